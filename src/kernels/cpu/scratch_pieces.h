// Divides one allocation into working arrays. Each array is aligned to cache lines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {

class ScratchPieces {
 public:
  // If `memory` is null, the object only measures the size.
  explicit ScratchPieces(std::byte* memory) : memory_(memory) {}

  template <class T>
  T* take(std::int64_t count) {
    std::byte* piece = memory_ != nullptr ? memory_ + bytes : nullptr;
    bytes += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }

  std::size_t bytes = 0;  // bytes used so far

 private:
  std::byte* memory_;
};

}  // namespace octavo::cpu
