// Costs of requests whose response could not report them: the client disconnected, or the response has no
// place for a cost (NDJSON). The router that sent the request reads the cost later.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "request/answer_cost.h"

namespace octavo {

// Request header of a router: the id with which it can read the cost, `GET /octavo/cost/ID`. The router
// chooses a new random id for each request, so that no client can read the costs of another.
inline constexpr std::string_view kCostIdHeader = "X-Octavo-Cost-Id";
inline constexpr std::size_t kCostIdBytesMax = 64;

// Any thread may call the functions.
class UnreadCosts {
 public:
  // Maximum number of costs; above it, the oldest is forgotten.
  static constexpr std::size_t kMost = 4096;

  void put(std::string id, const AnswerCost& cost);
  // Returns the cost and forgets it. Returns nullopt if the request has not ended, or if the id is unknown.
  std::optional<AnswerCost> take(std::string_view id);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, AnswerCost> costs_;
  std::deque<std::string> ids_;  // oldest first; may contain ids that were taken
};

}  // namespace octavo
