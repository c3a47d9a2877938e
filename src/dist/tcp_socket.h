// TCP connections between known processes. They detect a dead peer or link within seconds.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace octavo {

inline constexpr int kReadMs = 2'000;       // for the first message of a client
inline constexpr int kDeadLinkMs = 10'000;  // time until a silent link counts as dead

// Closes at the end.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }  // owned by the caller

 private:
  int fd_;
};

struct TcpAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int port() const;
  TcpAddress with_port(int port) const;
};

// Error (invalid_argument) with the name `field`: the host has no address.
Result<TcpAddress> resolve(std::string_view field, const std::string& host, int port);

// Errors of these four: io, unavailable.
Result<Socket> listen_at(const TcpAddress& address);
Result<Socket> connect_to(const TcpAddress& address);
// A free port of 127.0.0.1. While the socket exists, no other program gets the port, and listen_at() may use
// it.
Result<std::pair<Socket, int>> reserve_port();
Result<std::pair<Socket, TcpAddress>> accept_from(const Socket& listener, int timeout_ms);

// False: the message is not complete within timeout_ms.
bool read_all(const Socket& socket, std::span<std::byte> bytes, int timeout_ms);

template <class T>
bool read_value(const Socket& socket, T& value, int timeout_ms = kReadMs) {
  return read_all(socket, std::as_writable_bytes(std::span(&value, 1)), timeout_ms);
}

// A few bytes, for which a new connection always has buffer space.
template <class T>
bool write_value(const Socket& socket, const T& value) {
  return send(socket.fd(), &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value);
}

}  // namespace octavo
