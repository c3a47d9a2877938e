// One end of a stream socket between two processes of a host, read and written without waiting, frame by
// frame.
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
  explicit FrameSocket(int fd) : fd_(fd) {}  // owned from now on
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&& other) noexcept;
  ~FrameSocket();

  int fd() const { return fd_; }

  // Takes what has come. False: the other end is gone.
  bool receive();
  // The next frame that is there whole, without its length; good until the next receive(). Nothing: none is.
  // Errors: the other end says nonsense.
  Result<std::optional<std::string_view>> next();

  // Frames are appended here (remote::append_frame) and leave with flush(). False: the other end is gone.
  std::string out;
  bool flush();

 private:
  int fd_ = -1;
  std::string in_;
  std::size_t taken_ = 0;  // of in_
};

}  // namespace octavo::remote
