// Which host of a job this is, as what has started the job tells its processes: a step of Slurm's, a group of
// Kubernetes' LeaderWorkerSet.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// name -> value; "": it is not set.
using Environment = std::function<std::string(const char*)>;

// The hosts of the job, where there are several; else one. Errors (invalid_argument): a variable is not what it should
// be; the field is its name.
Result<NodeOptions> nodes_of_job(const Environment& environment);

}  // namespace octavo
