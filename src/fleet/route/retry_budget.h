// Limits retries to a fraction of the requests, plus a few per second (Finagle's retry budget), so that
// retries do not multiply the load of an overloaded fleet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace octavo::fleet {

// Thread-safe.
class RetryBudget {
 public:
  explicit RetryBudget(double share) : share_(share) {}

  // Must be called for each new request. Adds a fraction of a retry to the budget.
  void earn() {
    const std::lock_guard lock(mutex_);
    earned_ = std::min(earned_ + share_, kSavedMax);
  }

  // Takes one retry from the budget. Returns false if the budget is empty.
  bool take(std::int64_t now_us) {
    const std::lock_guard lock(mutex_);
    free_ = std::min(kFreePerSecond, free_ + kFreePerSecond * static_cast<double>(now_us - taken_us_) * 1e-6);
    taken_us_ = now_us;
    double& from = earned_ >= 1 ? earned_ : free_;
    if (from < 1) return false;
    from -= 1;
    return true;
  }

 private:
  static constexpr double kFreePerSecond = 10;
  static constexpr double kSavedMax = 100;

  const double share_;
  std::mutex mutex_;
  double earned_ = 0;
  double free_ = kFreePerSecond;
  std::int64_t taken_us_ = 0;
};

}  // namespace octavo::fleet
