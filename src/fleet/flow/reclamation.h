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

  // Returns at most two running requests to end now, and never the same request twice. Selects only
  // requests with priorities below 0 and below the priority of blocked[0], the highest blocked band.
  // Selects the lowest priority first, and among equal priorities the newest request. Assumes that all
  // requests have the same size, and selects the number that lowers the saturation to the ceiling.
  // Selects none until all previously selected requests have ended (or for 10 s). After that it waits 0.5
  // s, so that the endpoints' metrics show the freed memory.
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
