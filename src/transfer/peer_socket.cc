#include "transfer/peer_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/clock.h"

namespace octavo {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> resolve(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return failure(ErrorCode::unavailable, "{}: {}", host, gai_strerror(error));
  return Addresses(found, &freeaddrinfo);
}

// Returns "" if the connection succeeds, otherwise the reason for the failure.
std::string connect_within(int ms, int fd, const addrinfo& address) {
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  if (::connect(fd, address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return std::strerror(errno);
    pollfd writable{fd, POLLOUT, 0};
    if (poll(&writable, 1, ms) != 1) return "the other engine did not answer";
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return std::strerror(error);
  }
  fcntl(fd, F_SETFL, flags);
  return "";
}

}  // namespace

PeerSocket::PeerSocket(int fd, const PeerTimes& times)
    : fd_(fd), answer_ms_(times.answer), sent_us_(now_us()) {
  const int yes = 1;
  const timeval silence{times.silence / 1000, times.silence % 1000 * 1000};
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
}

PeerSocket::PeerSocket(PeerSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), answer_ms_(other.answer_ms_), sent_us_(other.sent_us_) {}

PeerSocket& PeerSocket::operator=(PeerSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(answer_ms_, other.answer_ms_);
  std::swap(sent_us_, other.sent_us_);
  return *this;
}

PeerSocket::~PeerSocket() {
  if (fd_ >= 0) close(fd_);
}

Result<PeerSocket> PeerSocket::connect(const std::string& host, int port, const PeerTimes& times) {
  TRY(const Addresses addresses, resolve(host, port, 0));
  std::string error = "the host has no address";
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) continue;
    error = connect_within(times.connect, fd, *a);
    if (error.empty()) return PeerSocket(fd, times);
    close(fd);
  }
  return failure(ErrorCode::unavailable, "{}:{}: {}", host, port, error);
}

// Limits the time for a complete message. The limit on silence is not enough: a peer that slowly sends single
// bytes is never silent, but also delays the request.
Result<> PeerSocket::in_time(std::int64_t since_us) const {
  if (now_us() - since_us <= std::int64_t{answer_ms_} * 1000) return {};
  return failure(ErrorCode::io, "the other engine took longer than {} ms", answer_ms_);
}

Result<> PeerSocket::send(std::span<const std::byte> bytes) {
  const std::int64_t began_us = now_us();
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return failure(ErrorCode::io, "cannot send: {}", std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
    if (!bytes.empty()) TRY_VOID(in_time(began_us));
  }
  sent_us_ = now_us();
  return {};
}

Result<> PeerSocket::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    TRY_VOID(in_time(sent_us_));
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return failure(ErrorCode::io, "the other engine has closed the connection");
    if (got < 0) return failure(ErrorCode::io, "cannot receive: {}", std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

void PeerSocket::interrupt() const { shutdown(fd_, SHUT_RDWR); }

Result<int> listen_at(const std::string& host, int& port) {
  TRY(const Addresses addresses, resolve(host, port, AI_PASSIVE));
  std::string error = "the host has no address";
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) continue;
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
      sockaddr_storage bound{};
      socklen_t size = sizeof bound;
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
      port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                               : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
      return fd;
    }
    error = std::strerror(errno);
    close(fd);
  }
  return failure(ErrorCode::io, "{}:{}: {}", host, port, error);
}

}  // namespace octavo
