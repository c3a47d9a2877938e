// Where each data-parallel rank of a server has a ZeroMQ endpoint, by vLLM's rule.
#pragma once

#include <string>

namespace octavo {

// TCP ports go up by the rank, other endpoints get a suffix. Rank 0 and "": as it is.
std::string rank_endpoint(const std::string& endpoint, int rank);

}  // namespace octavo
