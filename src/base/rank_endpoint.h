// ZeroMQ endpoints of the data-parallel ranks of a server, as in vLLM.
#pragma once

#include <string>

namespace octavo {

// Adds the rank to the port of a TCP endpoint, or as a suffix to other endpoints. Rank 0 keeps `endpoint`.
std::string rank_endpoint(const std::string& endpoint, int rank);

}  // namespace octavo
