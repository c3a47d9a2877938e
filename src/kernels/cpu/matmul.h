// The blocking of matmul.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {

// Rows of x that are laid out and multiplied at a time.
constexpr std::int64_t kMatmulRows = 384;

// Working memory of a product with this many columns.
constexpr std::size_t matmul_scratch_bytes(std::int64_t cols) {
  return static_cast<std::size_t>(kMatmulRows * (cols + 1)) * sizeof(float);
}

}  // namespace octavo::cpu
