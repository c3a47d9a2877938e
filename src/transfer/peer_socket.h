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
  int silence = 5'000;  // maximum time without a received byte
  int answer = 20'000;  // maximum time for a complete message; it is short, because requests wait for
                        // messages
};

class PeerSocket {
 public:
  // Connects. Returns unavailable if no process listens at the address, or if the host does not respond in
  // time.
  static Result<PeerSocket> connect(const std::string& host, int port, const PeerTimes& times = {});
  explicit PeerSocket(int fd, const PeerTimes& times = {});  // fd: connected socket, which the object owns
  PeerSocket(PeerSocket&& other) noexcept;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket();

  // Transfer all bytes. Return io if the peer has closed the connection, is silent for too long, or takes too
  // long for the complete message.
  Result<> send(std::span<const std::byte> bytes);
  Result<> receive(std::span<std::byte> bytes);

  int fd() const { return fd_; }

  // Makes the running call and all later calls fail immediately. Any thread, while the object exists.
  void interrupt() const;

 private:
  Result<> in_time(std::int64_t since_us) const;

  int fd_ = -1;
  int answer_ms_;
  std::int64_t sent_us_ = 0;  // time of the last send, or of the connect, in microseconds
};

// Listens on the host's address and returns a descriptor that the caller owns. If `port` is 0, the operating
// system chooses a port, and `port` is set to it. Errors name the address.
Result<int> listen_at(const std::string& host, int& port);

}  // namespace octavo
