// Limits the memory for all request bodies of a server.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace octavo::http {

class BodyBudget {
 public:
  explicit BodyBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Returns false, and takes nothing, if the budget has too few bytes left.
  bool take(std::uint64_t bytes) {
    if (used_.fetch_add(bytes) + bytes <= bytes_max_) return true;
    used_.fetch_sub(bytes);
    return false;
  }
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes); }
  std::uint64_t used() const { return used_.load(); }

 private:
  std::atomic<std::uint64_t> used_ = 0;
  std::uint64_t bytes_max_;
};

// The bytes that one body takes from the budget. The destructor returns them.
class BodyShare {
 public:
  BodyShare() = default;
  explicit BodyShare(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  BodyShare(BodyShare&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyShare& operator=(BodyShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BodyShare() {
    if (budget_) budget_->give_back(bytes_);
  }

  // Returns false if the budget has too few bytes left. Without a budget, returns true.
  bool grow_to(std::uint64_t bytes) {
    if (bytes <= bytes_ || !budget_) return true;
    if (!budget_->take(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  std::shared_ptr<BodyBudget> budget_;
  std::uint64_t bytes_ = 0;
};

}  // namespace octavo::http
