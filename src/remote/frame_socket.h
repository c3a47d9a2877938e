// One end of a stream socket between two processes. It reads and writes complete frames without waiting.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::remote {

class FrameSocket {
 public:
  FrameSocket() = default;
  explicit FrameSocket(int fd) : fd_(fd) {}  // takes ownership of fd
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&& other) noexcept;
  ~FrameSocket();

  int fd() const { return fd_; }

  // Receives the available bytes. Returns false if the other end has disconnected.
  bool receive();
  // Returns the next complete frame without its length; valid until the next receive(). Returns nullopt if no
  // frame is complete, or an error if a frame has an invalid length.
  Result<std::optional<std::string_view>> next();

  // Bytes to send: append frames with remote::append_frame, then call flush(), which returns false if the
  // other end has disconnected.
  std::string out;
  bool flush();

 private:
  int fd_ = -1;
  std::string in_;
  std::size_t taken_ = 0;  // number of bytes of in_ that next() has returned
};

}  // namespace octavo::remote
