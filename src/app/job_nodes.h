// The index of this host in a job, from the variables of the job's launcher: a Slurm step, or a group of
// Kubernetes' LeaderWorkerSet.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// name -> value; "": not set.
using Environment = std::function<std::string(const char*)>;

// The hosts of the job, if there are several; else one. Errors (invalid_argument): an invalid variable; the
// field is its name.
Result<NodeOptions> nodes_of_job(const Environment& environment);

}  // namespace octavo
