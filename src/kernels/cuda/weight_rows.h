// Functions with which kernels read weights that are stored as numbers or as codes.
#pragma once

#include "kernels/cuda/gpu.h"

namespace octavo::cuda {

__device__ inline const std::byte* row_of(const WeightRows& w, std::int64_t row) {
  return w.data + element_at(row, w.stride, 0);
}

__device__ inline float number_of(const WeightRows& w, GroupScale group, float code) {
  return w.zeros ? group.scale * (code - group.offset) : group.scale * (code - w.zero) - group.offset;
}

__device__ inline GroupScale group_of(const WeightRows& w, const std::byte* row, std::int64_t column) {
  const int group = static_cast<int>(column) / w.group;
  // Padding columns have no group. They may use any scale, so they use the last one.
  return reinterpret_cast<const GroupScale*>(row)[group < w.groups ? group : w.groups - 1];
}

__device__ inline float doubled_e2m1(unsigned code) {
  const unsigned exponent = code >> 1 & 3, last = code & 1;
  const unsigned magnitude = exponent == 0 ? last : (2 + last) << (exponent - 1);
  return (code & 8) != 0 ? -static_cast<float>(magnitude) : static_cast<float>(magnitude);
}

// `index` is the result of index_of().
__device__ inline float code_at(Format format, const std::byte* codes, std::int64_t index) {
  if (format == Format::f8) return to_float(F8{static_cast<std::uint8_t>(codes[index])});
  if (format == Format::q8) return static_cast<float>(static_cast<signed char>(codes[index]));
  const unsigned code = static_cast<unsigned>(codes[index / 2]) >> (index % 2 * 4) & 15;
  return format == Format::e2m1 ? doubled_e2m1(code) : static_cast<float>(code);
}

__device__ inline float weight_at(const WeightRows& w, std::int64_t row, std::int64_t column) {
  const std::byte* numbers = row_of(w, row);
  if (w.format == Format::f32) return reinterpret_cast<const float*>(numbers)[column];
  if (w.format == Format::bf16) return to_float(reinterpret_cast<const Bf16*>(numbers)[column]);
  if (w.format == Format::f16) return to_float(reinterpret_cast<const F16*>(numbers)[column]);
  return number_of(w, group_of(w, numbers, column),
                   code_at(w.format, numbers + w.codes_at, index_of(w, column)));
}

// Reads eight numbers of a row, starting at `column` (a multiple of 8), as 16-bit T. Codes must be in
// column order, and their values are rounded to T. kFormat is the format of codes; f32, f16 and bf16 mean
// numbers of type T.
template <class T, Format kFormat>
__device__ inline uint4 load_weights(const WeightRows& w, const std::byte* row, std::int64_t column) {
  if constexpr (kFormat == Format::f32 || kFormat == Format::f16 || kFormat == Format::bf16) {
    return *reinterpret_cast<const uint4*>(row + column * 2);
  } else {
    constexpr int kBytes = kFormat == Format::q4 || kFormat == Format::e2m1 ? 4 : 8;
    alignas(8) std::byte codes[kBytes];
    const std::byte* from = row + w.codes_at + column * kBytes / 8;
    if constexpr (kBytes == 4) {
      *reinterpret_cast<std::uint32_t*>(codes) = *reinterpret_cast<const std::uint32_t*>(from);
    } else {
      *reinterpret_cast<uint2*>(codes) = *reinterpret_cast<const uint2*>(from);
    }
    const GroupScale group = group_of(w, row, column);
    float numbers[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) numbers[i] = number_of(w, group, code_at(kFormat, codes, i));
    return {pack<T>(numbers[0], numbers[1]), pack<T>(numbers[2], numbers[3]), pack<T>(numbers[4], numbers[5]),
            pack<T>(numbers[6], numbers[7])};
  }
}

}  // namespace octavo::cuda
