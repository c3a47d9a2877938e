// TCP connections between known processes. They detect a dead process or link within seconds.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace octavo {

inline constexpr int kReadMs = 2'000;       // time limit for a client's first message
inline constexpr int kDeadLinkMs = 10'000;  // ms without traffic after which a link counts as dead

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }  // the caller then owns the descriptor

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

// Returns invalid_argument if the host has no address. `field` is the flag that the error names.
Result<TcpAddress> resolve(std::string_view field, const std::string& host, int port);

// The next four functions return an io or unavailable error on failure.
Result<Socket> listen_at(const TcpAddress& address);
Result<Socket> connect_to(const TcpAddress& address);
// Reserves a free port of 127.0.0.1. While the returned socket exists, no other program gets the port, but
// listen_at() may use it.
Result<std::pair<Socket, int>> reserve_port();
Result<std::pair<Socket, TcpAddress>> accept_from(const Socket& listener, int timeout_ms);

// Reads until the span is full. Returns false if this takes longer than timeout_ms.
bool read_all(const Socket& socket, std::span<std::byte> bytes, int timeout_ms);

template <class T>
bool read_value(const Socket& socket, T& value, int timeout_ms = kReadMs) {
  return read_all(socket, std::as_writable_bytes(std::span(&value, 1)), timeout_ms);
}

// Writes a few bytes; a new connection always has buffer space for them.
template <class T>
bool write_value(const Socket& socket, const T& value) {
  return send(socket.fd(), &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value);
}

}  // namespace octavo
