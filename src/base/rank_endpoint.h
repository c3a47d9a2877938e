// The ZeroMQ endpoint of each data-parallel rank of a server, as in vLLM.
#pragma once

#include <string>

namespace octavo {

// Adds the rank to the port of a TCP endpoint; other endpoints get a suffix. For rank 0 or "" the result is
// `endpoint`.
std::string rank_endpoint(const std::string& endpoint, int rank);

}  // namespace octavo
