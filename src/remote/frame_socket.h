// One end of a stream socket between two processes. Reads and writes whole frames without waiting.
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

  // Receives the available bytes. False: the other end is gone.
  bool receive();
  // Returns the next complete frame without its length; valid until the next receive(). nullopt: no frame
  // is complete. Errors: invalid frame length.
  Result<std::optional<std::string_view>> next();

  // Bytes to send: append frames with remote::append_frame, then call flush(). It returns false if the
  // other end is gone.
  std::string out;
  bool flush();

 private:
  int fd_ = -1;
  std::string in_;
  std::size_t taken_ = 0;  // number of bytes of in_ that next() has returned
};

}  // namespace octavo::remote
