// Packs the many small arrays of a step into one buffer, so that one copy moves all of them to or from the
// device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "kernels/staging.h"

namespace octavo {

template <class T>
struct Part {
  std::size_t offset = 0;
  std::size_t count = 0;
};

// Call clear(), add() for each array, then fit(). Then either write the host arrays and upload(), or
// download() and read the host arrays. There are two host buffers, so the host can write one buffer while
// the device still reads the other.
class StepMemory {
 public:
  void clear() { bytes_ = 0; }

  template <class T>
  Part<T> add(std::size_t count) {
    const std::size_t offset = bytes_;
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return {offset, count};
  }

  // Allocates memory for all arrays and discards their contents. The memory grows by doubling and never
  // shrinks. The device address changes only when the memory grows.
  Result<> fit(Device& device, Stream& stream) {
    if (bytes_ > staging_.bytes()) {
      const std::size_t bytes = std::max(bytes_, 2 * staging_.bytes());
      TRY_VOID(staging_.reserve(device, stream, bytes));
      TRY(device_, device.allocate(bytes));
    }
    staging_.swap(stream);
    return {};
  }

  template <class T>
  std::span<T> host(const Part<T>& part) {
    return {reinterpret_cast<T*>(staging_.data() + part.offset), part.count};
  }
  // Returns the array on the device. An array of structs becomes u8 [count, sizeof(T)].
  template <class T>
  View device(const Part<T>& part) const {
    auto* data = static_cast<std::byte*>(device_.data()) + part.offset;
    const auto count = static_cast<std::int64_t>(part.count);
    if constexpr (std::is_class_v<T>)
      return View::of(data, DType::u8, {count, sizeof(T)});
    else
      return View::of(data, dtype_of<T>, {count});
  }

  void upload(Device& device, Stream& stream) { staging_.send(device, stream, all()); }
  void download(Device& device, Stream& stream) { device.download(stream, staging_.data(), all()); }

 private:
  static constexpr std::size_t kAlignment = 64;
  View all() const { return device_.view(DType::u8, {static_cast<std::int64_t>(bytes_)}); }

  std::size_t bytes_ = 0;
  Staging staging_;
  Buffer device_;
};

}  // namespace octavo
