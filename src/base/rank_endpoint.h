// ZeroMQ endpoint of each data-parallel rank of a server, by vLLM's rule.
#pragma once

#include <string>

namespace octavo {

// Adds the rank to a TCP port; other endpoints get a suffix. Rank 0 and "" stay unchanged.
std::string rank_endpoint(const std::string& endpoint, int rank);

}  // namespace octavo
