// Double-buffered host memory for uploads: the host fills one buffer while the device reads the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/device.h"

namespace octavo {

// Call reserve() once. Then, for each upload, call swap(), write to data(), and call send().
class Staging {
 public:
  // Allocates two buffers with at least this size. Contents of earlier buffers are lost. Returns an error
  // if memory does not suffice.
  Result<> reserve(Device& device, Stream& stream, std::size_t bytes) {
    if (bytes <= bytes_) return {};
    stream.synchronize();  // waits, because the device may still read the old buffers
    for (Piece& piece : pieces_) {
      TRY(piece.memory, device.allocate_staging(bytes));
    }
    bytes_ = bytes;
    return {};
  }

  std::size_t bytes() const { return bytes_; }

  // Switches to the other buffer. First waits until the device has read that buffer.
  void swap(Stream& stream) {
    current_ = 1 - current_;
    stream.wait(pieces_[current_].sent);
  }
  std::byte* data() const { return static_cast<std::byte*>(pieces_[current_].memory.data()); }

  // Copies the first to.bytes() bytes of the current buffer to `to`.
  void send(Device& device, Stream& stream, const View& to) {
    CHECK(static_cast<std::size_t>(to.bytes()) <= bytes_, "{} bytes, room for {}", to.bytes(), bytes_);
    device.upload(stream, to, data());
    pieces_[current_].sent = stream.mark();
  }

 private:
  struct Piece {
    Buffer memory;
    Stream::Mark sent = 0;
  };
  std::array<Piece, 2> pieces_;
  std::size_t current_ = 0, bytes_ = 0;
};

}  // namespace octavo
