// Estimates how many concurrent requests an endpoint accepts, from the requests that it refuses (status 429
// or 503).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace octavo::fleet {

class LearnedCapacity {
 public:
  static constexpr int kUnknown = std::numeric_limits<int>::max();

  // Records that the endpoint refused a request while `others` requests were in flight. The endpoint then
  // gets no requests for `pause_us` (from Retry-After), or until one of its requests ends.
  void refused(int others, std::int64_t now_us, std::optional<std::int64_t> pause_us) {
    constexpr std::int64_t kPauseUs = 100'000;  // used if the response has no Retry-After
    capacity_ = std::max(others, 1);
    refused_us_ = now_us;
    blocked_until_us_ = now_us + pause_us.value_or(kPauseUs);
  }
  void succeeded() { blocked_until_us_ = 0; }
  void forget() { *this = {}; }

  // Returns how many more requests the endpoint accepts. Returns kUnknown if the endpoint has refused none.
  int free(int in_flight, std::int64_t now_us) const {
    if (capacity_ == kUnknown) return kUnknown;
    if (now_us < blocked_until_us_) return 0;
    constexpr std::int64_t kGrowthUs = 1'000'000;  // the limit rises by one request in this time
    const std::int64_t capacity = capacity_ + (now_us - refused_us_) / kGrowthUs;
    return static_cast<int>(std::clamp<std::int64_t>(capacity - in_flight, 0, kUnknown));
  }

 private:
  int capacity_ = kUnknown;
  std::int64_t refused_us_ = 0;
  std::int64_t blocked_until_us_ = 0;
};

}  // namespace octavo::fleet
