// A TCP connection to another engine, for a thread that waits: everything has a time limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

class PeerSocket {
 public:
  // Errors: unavailable, when nobody listens there or the host does not answer within some seconds.
  static Result<PeerSocket> connect(const std::string& host, int port);
  explicit PeerSocket(int fd);  // connected; owned from now on
  PeerSocket(PeerSocket&& other) noexcept;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket();

  // All of it. Errors: io, when the other end has gone, was silent for some seconds, or takes many of them:
  // to take what is sent, or from what was sent last to the end of what is to be received.
  Result<> send(std::span<const std::byte> bytes);
  Result<> receive(std::span<std::byte> bytes);

  int fd() const { return fd_; }

  // Any thread, while the object lives: calls above and later ones fail at once.
  void interrupt() const;

 private:
  Result<> in_time(std::int64_t since_us) const;

  int fd_ = -1;
  std::int64_t sent_us_ = 0;  // when the last bytes were, or since it is connected
};

// Listens on the host's address. `port` 0: the system chooses; set to what it is. Owned by the caller. Errors
// name the address.
Result<int> listen_at(const std::string& host, int& port);

}  // namespace octavo
