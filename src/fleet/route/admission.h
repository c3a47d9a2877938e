// Limits the number of concurrent requests in the router (--max-concurrent-requests).
#pragma once

#include <atomic>

namespace octavo::fleet {

class Admission {
 public:
  explicit Admission(int limit) : limit_(limit) {}  // negative: no limit
  // Returns whether the request is admitted. The caller must call leave() at the end of an admitted
  // request.
  bool admit() {
    if (++requests_ <= limit_ || limit_ < 0) return true;
    --requests_;
    return false;
  }
  void enter() { ++requests_; }
  void leave() { --requests_; }
  bool full() const { return limit_ >= 0 && requests_ >= limit_; }

 private:
  const int limit_;
  std::atomic<int> requests_ = 0;
};

}  // namespace octavo::fleet
