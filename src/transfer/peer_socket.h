// A blocking TCP connection to another engine. Every call has a time limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

// Time limits for a peer, in ms.
struct PeerTimes {
  int connect = 2'000;
  int silence = 5'000;  // maximum time without a byte
  int answer = 20'000;  // maximum time for a whole message; requests wait for it, so it is short
};

class PeerSocket {
 public:
  // Errors: unavailable, no process listens at the address or the host does not respond in time.
  static Result<PeerSocket> connect(const std::string& host, int port, const PeerTimes& times = {});
  explicit PeerSocket(int fd, const PeerTimes& times = {});  // fd: connected; takes ownership
  PeerSocket(PeerSocket&& other) noexcept;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket();

  // Transfer all bytes. Errors: io, the peer has closed the connection, is silent for too long, or takes
  // too long for the whole message.
  Result<> send(std::span<const std::byte> bytes);
  Result<> receive(std::span<std::byte> bytes);

  int fd() const { return fd_; }

  // Any thread, while the object exists: makes the running call and all later calls fail at once.
  void interrupt() const;

 private:
  Result<> in_time(std::int64_t since_us) const;

  int fd_ = -1;
  int answer_ms_;
  std::int64_t sent_us_ = 0;  // time of the last send, or of the connect
};

// Listens on the host's address and returns a descriptor that the caller owns. If `port` is 0, the
// operating system chooses a port, and `port` is set to it. Errors name the address.
Result<int> listen_at(const std::string& host, int& port);

}  // namespace octavo
