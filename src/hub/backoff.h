// Number of retries, and the pauses between them.
#pragma once

#include <chrono>

#include "base/error.h"

namespace octavo::hub {

class Backoff {
 public:
  // After a failure: waits before the next attempt, and logs it. Errors: the failure itself if a retry cannot
  // help (it is not `unavailable`); `io` after the last attempt.
  Result<> wait(const Error& failure);

  // The server's Retry-After.
  void at_least(std::chrono::milliseconds pause) { server_pause_ = pause; }

  // There was progress: forget earlier failures.
  void reset() { *this = {}; }

 private:
  static constexpr std::chrono::milliseconds kFirst{200};

  int tries_ = 1;
  std::chrono::milliseconds pause_ = kFirst;
  std::chrono::milliseconds server_pause_{};
};

// Calls `attempt(backoff)` until it succeeds or a retry cannot help.
template <class Attempt>
auto with_retries(Attempt&& attempt) -> decltype(attempt(std::declval<Backoff&>())) {
  for (Backoff backoff;;) {
    auto result = attempt(backoff);
    if (result) return result;
    TRY_VOID(backoff.wait(result.error()));
  }
}

}  // namespace octavo::hub
