// Costs that a response could not report, because the client disconnected, or because the response's format
// has no field for a cost (NDJSON). The router that sent the request reads the cost later.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "request/answer_cost.h"

namespace octavo {

// Request header with an id that the router chooses. With it, the router can later read the request's cost:
// `GET /octavo/cost/ID`. The id is random and new for each request, so that no client can read the costs of
// another.
inline constexpr std::string_view kCostIdHeader = "X-Octavo-Cost-Id";
inline constexpr std::size_t kCostIdBytesMax = 64;

// Any thread may call the functions.
class UnreadCosts {
 public:
  // While a copy of an Open exists, more costs may be added to its id.
  using Open = std::shared_ptr<const void>;

  // Maximum number of stored costs. Above it, the oldest cost is dropped.
  static constexpr std::size_t kMost = 4096;

  // If a request has several generations, each of them opens the id, and the request itself keeps it open
  // between them.
  Open open(const std::string& id) const;
  void put(const std::string& id, const AnswerCost& cost);
  // Removes and returns the cost of an id. Returns nullopt if the id is unknown or still open.
  std::optional<AnswerCost> take(std::string_view id);

 private:
  struct State {
    std::mutex mutex;
    std::unordered_map<std::string, AnswerCost> costs;
    std::deque<std::string> ids;                // oldest first; may contain ids that were taken
    std::unordered_map<std::string, int> open;  // [id]: number of Open objects
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();  // an Open may outlive this object
};

}  // namespace octavo
