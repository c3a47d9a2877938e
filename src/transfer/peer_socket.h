// A TCP connection to another engine, for a thread that waits: everything has a time limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace octavo {

// How long a peer may take, in ms.
struct PeerTimes {
  int connect = 2'000;
  int silence = 5'000;  // between bytes
  int answer = 20'000;  // for all of a message; longer than computing it takes, or a prompt waits for it
};

class PeerSocket {
 public:
  // Errors: unavailable, when nobody listens there or the host does not answer in time.
  static Result<PeerSocket> connect(const std::string& host, int port, const PeerTimes& times = {});
  explicit PeerSocket(int fd, const PeerTimes& times = {});  // connected; owned from now on
  PeerSocket(PeerSocket&& other) noexcept;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket();

  // All bytes. Errors: io, when the other end has closed, is silent for too long, or takes too long in all:
  // to accept what is sent, or from the last send to the end of what is received.
  Result<> send(std::span<const std::byte> bytes);
  Result<> receive(std::span<std::byte> bytes);

  int fd() const { return fd_; }

  // Any thread, while the object lives: calls above and later ones fail at once.
  void interrupt() const;

 private:
  Result<> in_time(std::int64_t since_us) const;

  int fd_ = -1;
  int answer_ms_;
  std::int64_t sent_us_ = 0;  // when the last bytes were, or since it is connected
};

// Listens on the host's address. `port` 0: the system chooses; set to what it is. Owned by the caller. Errors
// name the address.
Result<int> listen_at(const std::string& host, int& port);

}  // namespace octavo
