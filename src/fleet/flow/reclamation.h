// Eviction of running requests, as in llm-d: selects requests to end, so that waiting ones of higher priority
// can run. Has no clock: time is an argument.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace octavo::fleet {

// A band with waiting requests, and the saturation from which on its requests wait.
struct BlockedBand {
  int priority = 0;
  double ceiling = 0;
};

class Reclamation {
 public:
  void started(std::uint64_t id, int priority, std::int64_t now_us);
  void ended(std::uint64_t id, std::int64_t now_us);

  // Returns at most two requests to end now, each only once. They have priorities below 0 and below that of
  // the first (highest) blocked band. The lowest priority is selected first, then the newest request. Their
  // number corresponds to the saturation above the ceiling, if all requests have the same size. Returns
  // none before the previously selected requests have ended (or 10 s have passed) plus 0.5 s, when metrics
  // show the freed memory.
  std::vector<std::uint64_t> victims(double saturation, std::span<const BlockedBand> blocked,
                                     std::int64_t now_us);

 private:
  struct Key {
    int priority;
    std::int64_t newest_us;  // negative start time, so that the newest request sorts first
    std::uint64_t id;
    auto operator<=>(const Key&) const = default;
  };

  std::unordered_map<std::uint64_t, Key> running_;
  std::set<Key> evictable_;
  std::unordered_map<std::uint64_t, std::int64_t> leaving_;  // time at which the request was selected, by id
  std::int64_t quiet_until_us_ = 0;
};

}  // namespace octavo::fleet
