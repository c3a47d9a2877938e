// Finds the index of this host among the hosts of a job. The launcher's variables contain it, for a Slurm
// step or a group of Kubernetes' LeaderWorkerSet.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Returns "" for a variable that is not set.
using Environment = std::function<std::string(const char*)>;

// Returns the number of hosts (1 without a job) and the index of this host. Returns invalid_argument on the
// variable if its value is invalid.
Result<NodeOptions> nodes_of_job(const Environment& environment);

}  // namespace octavo
