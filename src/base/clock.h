// The monotonic clock. Modules that make decisions (schedule, kv, fleet) get the time as an argument.
#pragma once

#include <chrono>
#include <cstdint>

namespace octavo {

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline std::int64_t now_us() { return now_ns() / 1000; }

}  // namespace octavo
