// A TCP connection to another engine, for a thread that waits: everything has a time limit.
#pragma once

#include <cstddef>
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

  // All of it. Errors: io, when the other end has gone or was silent for some seconds.
  Result<> send(std::span<const std::byte> bytes);
  Result<> receive(std::span<std::byte> bytes);

  int fd() const { return fd_; }

  // Any thread, while the object lives: calls above and later ones fail at once.
  void interrupt() const;

 private:
  int fd_ = -1;
};

// Listens on the host's address. `port` 0: the system chooses; set to what it is. Owned by the caller. Errors
// name the address.
Result<int> listen_at(const std::string& host, int& port);

}  // namespace octavo
