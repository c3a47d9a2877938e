// Memory that has one owner, for weights, the KV cache and workspaces.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/error.h"
#include "tensor/view.h"

namespace octavo {

// Memory on the host or on a device. The destructor frees it with the function that the constructor
// received.
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

  // Returns a row-major view of the first elements. It must not be larger than the buffer.
  View view(DType dtype, std::initializer_list<std::int64_t> shape) const {
    const View v = View::of(data_, dtype, shape);
    CHECK(static_cast<std::size_t>(v.bytes()) <= bytes_, "{} bytes requested of {}", v.bytes(), bytes_);
    return v;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_ = nullptr;
};

// Allocates zeroed, page-aligned host memory from the operating system, in huge pages if they are available.
Result<Buffer> allocate_host(std::size_t bytes);

// Allocates memory for objects that are freed at about the same time, such as the matrices of a model.
// Several buffers share a chunk, so that small buffers and the ends of large ones are in huge pages too. A
// chunk is freed when its last buffer is freed. Thread-safe.
Result<Buffer> allocate_host_packed(std::size_t bytes);

}  // namespace octavo
