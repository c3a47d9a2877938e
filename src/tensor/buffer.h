// Memory with one owner.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/error.h"
#include "tensor/view.h"

namespace octavo {

// Bytes on some device, given back by the function that came with them.
class Buffer {
 public:
  using Release = void (*)(void* data, std::size_t bytes);

  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Release release) : data_(data), bytes_(bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        release_(other.release_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(data_, bytes_);
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // A view of the first elements; they must fit.
  View view(DType dtype, std::initializer_list<std::int64_t> shape) const {
    const View v = View::of(data_, dtype, shape);
    CHECK(static_cast<std::size_t>(v.bytes()) <= bytes_, "{} bytes wanted of {}", v.bytes(), bytes_);
    return v;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
};

// Zeroed host memory from the operating system, page-aligned, with huge pages where the system offers them.
Result<Buffer> allocate_host(std::size_t bytes);

// The same for what lives as long as its neighbours, such as the matrices of a model: buffers lie side by
// side in chunks, so that small ones and the ends of larger ones have huge pages too. A chunk is given back
// with the last buffer in it. From any thread.
Result<Buffer> allocate_host_packed(std::size_t bytes);

}  // namespace octavo
