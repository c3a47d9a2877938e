// When the engine stops, limits the time in which a thread writes pending KV blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace octavo {

class FlushLimit {
 public:
  // The limit in microseconds. It is below 5 s, because EngineProcess kills an engine that takes 5 s to stop.
  static constexpr std::int64_t kUs = 4'000'000;

  void begin() { until_us_ = now_us() + kUs; }
  bool begun() const { return until_us_ != 0; }
  // Returns true if the time has passed.
  bool is_over() const {
    const std::int64_t until = until_us_;
    return until != 0 && now_us() > until;
  }

 private:
  std::atomic<std::int64_t> until_us_ = 0;
};

}  // namespace octavo
