// Chooses running requests to end so that waiting ones with higher priority can run (llm-d's eviction of
// requests in flight). Has no clock: time is an argument.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace octavo::fleet {

// A band in which requests wait, and from which saturation on they do.
struct BlockedBand {
  int priority = 0;
  double ceiling = 0;
};

class Reclamation {
 public:
  void started(std::uint64_t id, int priority, std::int64_t now_us);
  void ended(std::uint64_t id, std::int64_t now_us);

  // Those that are to end now, each named once: of priorities below 0 and below that of the first blocked band
  // (the highest first), the lowest first, of equals the newest. As many as make up what saturation is above
  // the ceiling, each taken to be as large as the mean of all that run, at most two; none before those named
  // last have ended (10 s are waited for), and half a second more, until what they held shows in metrics.
  std::vector<std::uint64_t> victims(double saturation, std::span<const BlockedBand> blocked,
                                     std::int64_t now_us);

 private:
  struct Key {
    int priority;
    std::int64_t newest_us;  // the negative of its start
    std::uint64_t id;
    auto operator<=>(const Key&) const = default;
  };

  std::unordered_map<std::uint64_t, Key> running_;
  std::set<Key> evictable_;
  std::unordered_map<std::uint64_t, std::int64_t> leaving_;  // when they were named
  std::int64_t quiet_until_us_ = 0;
};

}  // namespace octavo::fleet
