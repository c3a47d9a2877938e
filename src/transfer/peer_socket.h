// A blocking TCP connection to another engine, with time limits for every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

// Time limits in ms.
struct PeerTimes {
  int connect = 2'000;
  int silence = 5'000;  // maximum time without a received byte
  // maximum time to receive a complete message; short, because requests wait for it
  int answer = 20'000;
};

class PeerSocket {
 public:
  // Returns unavailable if the address refuses the connection or does not respond in time.
  static Result<PeerSocket> connect(const std::string& host, int port, const PeerTimes& times = {});
  // fd: a connected socket; this object closes it.
  explicit PeerSocket(int fd, const PeerTimes& times = {});
  PeerSocket(PeerSocket&& other) noexcept;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket();

  // send() and receive() transfer all bytes. They return io if the peer closes the connection or exceeds a
  // limit of PeerTimes.
  Result<> send(std::span<const std::byte> bytes);
  Result<> receive(std::span<std::byte> bytes);

  int fd() const { return fd_; }

  // Makes the current call and all later calls fail at once. Any thread may call it while the object
  // exists.
  void interrupt() const;

 private:
  Result<> in_time(std::int64_t since_us) const;

  int fd_ = -1;
  int answer_ms_;
  // time in microseconds of the last send, or of the connect
  std::int64_t sent_us_ = 0;
};

// Listens on host:port and returns a descriptor that the caller owns. If `port` is 0, the operating system
// chooses a port, and `port` is set to it. Errors name the address.
Result<int> listen_at(const std::string& host, int& port);

}  // namespace octavo
