// Finds the index of this host in a job, from the launcher's variables: a Slurm step, or a group of
// Kubernetes' LeaderWorkerSet.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Returns the value of a variable; "" if it is not set.
using Environment = std::function<std::string(const char*)>;

// Returns the number of hosts in the job (1 without a job), and the index of this host. Errors:
// invalid_argument, with the variable's name as field.
Result<NodeOptions> nodes_of_job(const Environment& environment);

}  // namespace octavo
