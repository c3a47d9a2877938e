#include "dist/tcp_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace octavo {

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

TcpAddress TcpAddress::with_port(int port) const {
  TcpAddress address = *this;
  const auto number = htons(static_cast<std::uint16_t>(port));
  if (address.storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = number;
  else
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = number;
  return address;
}

int TcpAddress::port() const {
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

Result<TcpAddress> resolve(std::string_view field, const std::string& host, int port) {
  addrinfo* found = nullptr;
  const addrinfo hints{.ai_flags = 0,
                       .ai_family = AF_UNSPEC,
                       .ai_socktype = SOCK_STREAM,
                       .ai_protocol = 0,
                       .ai_addrlen = 0,
                       .ai_addr = nullptr,
                       .ai_canonname = nullptr,
                       .ai_next = nullptr};
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return invalid(field, "{}: {}", host, gai_strerror(error));
  TcpAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

Result<Socket> listen_at(const TcpAddress& address) {
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket.fd() < 0 || bind(socket.fd(), address.get(), address.length) != 0 ||
      listen(socket.fd(), 64) != 0)
    return failure(ErrorCode::io, "cannot listen at port {}: {}", address.port(), std::strerror(errno));
  return socket;
}

Result<std::pair<Socket, int>> reserve_port() {
  TRY(TcpAddress address, resolve("address", "127.0.0.1", 0));
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket.fd() < 0 || bind(socket.fd(), address.get(), address.length) != 0 ||
      getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return failure(ErrorCode::io, "cannot reserve a port: {}", std::strerror(errno));
  return std::pair(std::move(socket), address.port());
}

namespace {

// Sets options that close the connection within kDeadLinkMs if the link is cut without a message.
void prepare(const Socket& socket) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket.fd(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kDeadLinkMs);
}

}  // namespace

Result<Socket> connect_to(const TcpAddress& address) {
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval most{.tv_sec = kReadMs / 1000, .tv_usec = 0};
  setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  if (socket.fd() < 0 || connect(socket.fd(), address.get(), address.length) != 0)
    return failure(ErrorCode::io, "{}", std::strerror(errno));
  prepare(socket);
  return socket;
}

bool read_all(const Socket& socket, std::span<std::byte> bytes, int timeout_ms) {
  const std::int64_t end_us = now_us() + std::int64_t{timeout_ms} * 1000;
  while (!bytes.empty()) {
    pollfd readable{socket.fd(), POLLIN, 0};
    const auto left_ms = static_cast<int>(std::max<std::int64_t>(0, (end_us - now_us()) / 1000));
    if (poll(&readable, 1, left_ms) == 0) return false;
    const ssize_t received = recv(socket.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (received > 0) bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return true;
}

Result<std::pair<Socket, TcpAddress>> accept_from(const Socket& listener, int timeout_ms) {
  pollfd readable{listener.fd(), POLLIN, 0};
  if (poll(&readable, 1, timeout_ms) <= 0)
    return failure(ErrorCode::unavailable, "no connection has arrived");
  TcpAddress address;
  address.length = sizeof address.storage;
  Socket socket(
      accept4(listener.fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.length, SOCK_CLOEXEC));
  if (socket.fd() < 0) return failure(ErrorCode::io, "{}", std::strerror(errno));
  prepare(socket);
  return std::pair(std::move(socket), address);
}

}  // namespace octavo
