#include "remote/frame_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "remote/wire.h"

namespace octavo::remote {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;

bool must_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

FrameSocket::FrameSocket(FrameSocket&& other) noexcept { *this = std::move(other); }

FrameSocket& FrameSocket::operator=(FrameSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(in_, other.in_);
  std::swap(taken_, other.taken_);
  std::swap(out, other.out);
  return *this;
}

FrameSocket::~FrameSocket() {
  if (fd_ >= 0) close(fd_);
}

bool FrameSocket::receive() {
  in_.erase(0, std::exchange(taken_, 0));
  for (;;) {
    const std::size_t held = in_.size();
    in_.resize(held + kReadBytes);
    const ssize_t got = recv(fd_, in_.data() + held, kReadBytes, MSG_DONTWAIT);
    in_.resize(held + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) return must_wait();
    if (got == 0) return false;
    if (static_cast<std::size_t>(got) < kReadBytes) return true;
  }
}

Result<std::optional<std::string_view>> FrameSocket::next() {
  const std::string_view rest = std::string_view(in_).substr(taken_);
  std::uint32_t size = 0;
  if (rest.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, rest.data(), sizeof size);
  if (size > kFrameBytesMax) return failure(ErrorCode::corrupt, "a frame of {} bytes", size);
  if (rest.size() - sizeof size < size) return std::nullopt;
  taken_ += sizeof size + size;
  return rest.substr(sizeof size, size);
}

bool FrameSocket::flush() {
  std::size_t sent = 0;
  while (sent < out.size()) {
    const ssize_t put = send(fd_, out.data() + sent, out.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && !must_wait()) return false;
    if (put < 0) break;
    sent += static_cast<std::size_t>(put);
  }
  out.erase(0, sent);
  return true;
}

}  // namespace octavo::remote
