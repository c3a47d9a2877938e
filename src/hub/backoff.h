// Limits the number of retries and sets the pauses between them.
#pragma once

#include <chrono>

#include "base/error.h"

namespace octavo::hub {

class Backoff {
 public:
  // Called after a failed attempt: logs the failure, and waits before the next attempt. Returns the failure
  // itself if it is not `unavailable` (a retry cannot help), or `io` after the last attempt.
  Result<> wait(const Error& failure);

  // Sets a minimum for the next pause, from the server's Retry-After.
  void at_least(std::chrono::milliseconds pause) { server_pause_ = pause; }

  // Called after progress: resets the number of attempts.
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
