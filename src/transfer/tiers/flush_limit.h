// Time limit for the end of a thread that writes KV blocks: until this limit, the thread writes the pending
// blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace octavo {

class FlushLimit {
 public:
  // limit in microseconds; clients kill an engine that needs 5 s to end
  static constexpr std::int64_t kUs = 4'000'000;

  void begin() { until_us_ = now_us() + kUs; }
  bool begun() const { return until_us_ != 0; }
  // Returns true if no more blocks may be written.
  bool is_over() const {
    const std::int64_t until = until_us_;
    return until != 0 && now_us() > until;
  }

 private:
  std::atomic<std::int64_t> until_us_ = 0;
};

}  // namespace octavo
