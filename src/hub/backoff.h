// Pauses between retries of hub requests, and their maximum number.
#pragma once

#include <chrono>

#include "base/error.h"

namespace octavo::hub {

class Backoff {
 public:
  // Call it after a failed attempt. It logs the failure and waits. It returns the failure if that is not
  // `unavailable`, because a retry cannot help, and io after the last attempt.
  Result<> wait(const Error& failure);

  // Minimum for the next pause, from the server's Retry-After; at most kLongest.
  void at_least(std::chrono::milliseconds pause) { server_pause_ = pause; }

  // Call it after progress. The number of attempts starts again.
  void reset() { *this = {}; }

 private:
  static constexpr std::chrono::milliseconds kFirst{200};

  int tries_ = 1;
  std::chrono::milliseconds pause_ = kFirst;
  std::chrono::milliseconds server_pause_{};
};

// Calls attempt(backoff) until it succeeds or a retry cannot help.
template <class Attempt>
auto with_retries(Attempt&& attempt) -> decltype(attempt(std::declval<Backoff&>())) {
  for (Backoff backoff;;) {
    auto result = attempt(backoff);
    if (result) return result;
    TRY_VOID(backoff.wait(result.error()));
  }
}

}  // namespace octavo::hub
