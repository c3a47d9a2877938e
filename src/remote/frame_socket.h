// One end of a stream socket between two processes. Sends and receives frames without blocking.
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

  // Reads the available bytes. Returns false if the other end has disconnected.
  bool receive();
  // Returns the next complete frame without its length, valid until the next receive(). Returns nullopt if
  // no complete frame has arrived, or an error if a length is invalid.
  Result<std::optional<std::string_view>> next();

  // Bytes to send. Append frames with remote::append_frame and then call flush(). It returns false if the
  // other end has disconnected.
  std::string out;
  bool flush();

 private:
  int fd_ = -1;
  std::string in_;
  // bytes of in_ that next() has already returned
  std::size_t taken_ = 0;
};

}  // namespace octavo::remote
