// Number of concurrent requests that an endpoint accepts, learned from its refusals (status 429 or 503).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace octavo::fleet {

class Places {
 public:
  static constexpr int kUnknown = std::numeric_limits<int>::max();

  // Records a refusal while `others` other requests were in flight. pause_us: Retry-After of the refusal. The
  // pause ends earlier if a request of the endpoint ends.
  void refused(int others, std::int64_t now_us, std::optional<std::int64_t> pause_us) {
    constexpr std::int64_t kPauseUs = 100'000;  // pause without Retry-After
    places_ = std::max(others, 1);
    refused_us_ = now_us;
    blocked_until_us_ = now_us + pause_us.value_or(kPauseUs);
  }
  void succeeded() { blocked_until_us_ = 0; }
  void forget() { *this = {}; }

  // Returns the number of further requests that the endpoint accepts; kUnknown before the first refusal.
  int free(int in_flight, std::int64_t now_us) const {
    if (places_ == kUnknown) return kUnknown;
    if (now_us < blocked_until_us_) return 0;
    constexpr std::int64_t kGrowthUs = 1'000'000;  // time after which the limit rises by one request
    const std::int64_t places = places_ + (now_us - refused_us_) / kGrowthUs;
    return static_cast<int>(std::clamp<std::int64_t>(places - in_flight, 0, kUnknown));
  }

 private:
  int places_ = kUnknown;
  std::int64_t refused_us_ = 0;
  std::int64_t blocked_until_us_ = 0;
};

}  // namespace octavo::fleet
