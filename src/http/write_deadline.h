// The time after which a connection closes because its client reads nothing.
#pragma once

#include <cstdint>
#include <limits>

namespace octavo::http {

// A write to a socket waits until the kernel's buffer has much space, so a slow client that reads all the
// time can make one write last for minutes. Therefore only the number of bytes that the client has not read
// says whether it reads. The kernel is asked for this number only at a deadline, so a client that reads
// nothing is found at the second deadline.
class WriteDeadline {
 public:
  // Times are in microseconds.
  void start(std::int64_t now, std::int64_t limit) {
    at_ = now + limit;
    limit_ = limit;
    unread_ = std::numeric_limits<int>::max();
  }
  void stop() { at_ = 0; }
  bool is_reached(std::int64_t now) const { return at_ != 0 && now > at_; }
  // Called when the deadline is reached. Returns false if the client has read nothing since the last
  // deadline, else sets the next deadline. unread: bytes in the kernel's buffer; negative: unknown.
  bool extend(std::int64_t now, int unread) {
    if (unread < 0 || unread >= unread_) return false;
    unread_ = unread;
    at_ = now + limit_;
    return true;
  }

 private:
  std::int64_t at_ = 0;  // 0: no deadline
  std::int64_t limit_ = 0;
  int unread_ = 0;
};

}  // namespace octavo::http
