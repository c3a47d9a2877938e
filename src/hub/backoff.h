// How often, and after which pauses, something that failed is tried again.
#pragma once

#include <chrono>

#include "base/error.h"

namespace octavo::hub {

class Backoff {
 public:
  // After a failure: waits before the next try, with a line in the log. Errors: the failure itself, when
  // another try cannot help (it is not `unavailable`) or this was the last one (it becomes `io`).
  Result<> wait(const Error& failure);

  // The server has said when to come again.
  void at_least(std::chrono::milliseconds pause) { asked_ = pause; }

  // There was progress: as if nothing had failed.
  void reset() { *this = {}; }

 private:
  static constexpr std::chrono::milliseconds kFirst{200};

  int tries_ = 1;
  std::chrono::milliseconds pause_ = kFirst;
  std::chrono::milliseconds asked_{};
};

// Calls `attempt(backoff)` until it works or trying again is of no use.
template <class Attempt>
auto with_retries(Attempt&& attempt) -> decltype(attempt(std::declval<Backoff&>())) {
  for (Backoff backoff;;) {
    auto result = attempt(backoff);
    if (result) return result;
    TRY_VOID(backoff.wait(result.error()));
  }
}

}  // namespace octavo::hub
