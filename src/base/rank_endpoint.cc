#include "base/rank_endpoint.h"

#include <fmt/format.h>

#include <charconv>

namespace octavo {

std::string rank_endpoint(const std::string& endpoint, int rank) {
  if (rank == 0 || endpoint.empty()) return endpoint;
  const std::size_t colon = endpoint.rfind(':');
  if (endpoint.starts_with("tcp://") && colon != std::string::npos) {
    int port = 0;
    const char* end = endpoint.data() + endpoint.size();
    if (std::from_chars(endpoint.data() + colon + 1, end, port).ptr == end)
      return fmt::format("{}:{}", endpoint.substr(0, colon), port + rank);
  }
  return fmt::format("{}_dp{}", endpoint, rank);
}

}  // namespace octavo
