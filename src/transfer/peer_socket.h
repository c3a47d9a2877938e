// A blocking TCP connection to another engine, in which every call has a time limit.
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
  int silence = 5'000;  // maximum time between two bytes
  int answer = 20'000;  // maximum time for a whole message; requests wait for it, so it is short
};

class PeerSocket {
 public:
  // Errors: unavailable, if no process listens there or the host does not respond in time.
  static Result<PeerSocket> connect(const std::string& host, int port, const PeerTimes& times = {});
  explicit PeerSocket(int fd, const PeerTimes& times = {});  // connected; takes ownership
  PeerSocket(PeerSocket&& other) noexcept;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket();

  // Transfer all bytes. Errors: io, if the peer has closed the connection, is silent for too long, or takes
  // too long for the whole message.
  Result<> send(std::span<const std::byte> bytes);
  Result<> receive(std::span<std::byte> bytes);

  int fd() const { return fd_; }

  // Any thread, while the object lives: makes the running call and later ones fail at once.
  void interrupt() const;

 private:
  Result<> in_time(std::int64_t since_us) const;

  int fd_ = -1;
  int answer_ms_;
  std::int64_t sent_us_ = 0;  // time of the last send, or of the connection
};

// Listens on the host's address and returns a descriptor that the caller owns. For `port` 0, the system
// chooses one and it is returned in `port`. Errors name the address.
Result<int> listen_at(const std::string& host, int& port);

}  // namespace octavo
