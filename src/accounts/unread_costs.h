// Costs of requests whose response could not report them: the client disconnected, or the response has no
// place for a cost (NDJSON). The router that sent the request reads the cost later.
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

// Request header of a router: the id with which it can read the cost, `GET /octavo/cost/ID`. The router
// chooses a new random id for each request, so that no client can read the costs of another.
inline constexpr std::string_view kCostIdHeader = "X-Octavo-Cost-Id";
inline constexpr std::size_t kCostIdBytesMax = 64;

// Any thread may call the functions.
class UnreadCosts {
 public:
  // While a copy of it exists, the request may still get costs.
  using Open = std::shared_ptr<const void>;

  // Maximum number of costs; above it, the oldest is forgotten.
  static constexpr std::size_t kMost = 4096;

  // A request with several generations opens its id for each of them, and for the time between them.
  Open open(const std::string& id) const;
  void put(const std::string& id, const AnswerCost& cost);
  // Returns the cost and forgets it. Returns nullopt while the id is open, and if it is unknown.
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
