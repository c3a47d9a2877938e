// Eviction of running requests, as in llm-d: selects running requests to end, so that waiting requests of
// higher priority can run. FlowGate calls it. The class has no clock, so times are arguments.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace octavo::fleet {

// A band whose requests wait because the saturation is above the band's ceiling.
struct BlockedBand {
  int priority = 0;
  double ceiling = 0;
};

class Reclamation {
 public:
  void started(std::uint64_t id, int priority, std::int64_t now_us);
  void ended(std::uint64_t id, std::int64_t now_us);

  // Returns at most two running requests to end now. A request is returned only once.
  // The request's priority is below 0, and below that of the first band in `blocked` with a ceiling above 0.
  // Requests with the lowest priority are first; among equal priorities, the newest request is first. Enough
  // requests are returned to lower the saturation to that band's ceiling, if all running requests use the
  // same amount of memory.
  // Waits until all returned requests have ended, or 10 s for each. After that it waits 0.5 s, so that the
  // endpoints' metrics show the freed memory.
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
  // request id -> time at which the request was selected
  std::unordered_map<std::uint64_t, std::int64_t> leaving_;
  std::int64_t quiet_until_us_ = 0;
};

}  // namespace octavo::fleet
