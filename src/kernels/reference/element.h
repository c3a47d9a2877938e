// Reads and writes single elements of a tensor of any format, as doubles.
#pragma once

#include <initializer_list>

#include "tensor/view.h"

namespace octavo::reference {

inline std::int64_t offset(const View& view, std::initializer_list<std::int64_t> index) {
  std::int64_t sum = 0;
  std::size_t axis = 0;
  for (const std::int64_t i : index) sum += i * view.stride[axis++];
  return sum;
}

inline double load(const void* data, DType type, std::int64_t i) {
  switch (type) {
    case DType::f32:
      return static_cast<const float*>(data)[i];
    case DType::f16:
      return to_f32(static_cast<const Float16*>(data)[i]);
    case DType::f8_e4m3:
      return to_f32(static_cast<const Float8E4M3*>(data)[i]);
    case DType::bf16:
      return to_f32(static_cast<const BFloat16*>(data)[i]);
    default:
      CHECK(false, "{} is not a floating-point format", name(type));
  }
}

inline void store(void* data, DType type, std::int64_t i, double value) {
  const auto narrow = static_cast<float>(value);
  switch (type) {
    case DType::f32:
      static_cast<float*>(data)[i] = narrow;
      return;
    case DType::f16:
      static_cast<Float16*>(data)[i] = to_f16(narrow);
      return;
    case DType::f8_e4m3:
      static_cast<Float8E4M3*>(data)[i] = to_f8_e4m3(narrow);
      return;
    case DType::bf16:
      static_cast<BFloat16*>(data)[i] = to_bf16(narrow);
      return;
    default:
      CHECK(false, "{} is not a floating-point format", name(type));
  }
}

inline double at(const View& view, std::initializer_list<std::int64_t> index) {
  return load(view.data, view.dtype, offset(view, index));
}

inline void put(const View& view, std::initializer_list<std::int64_t> index, double value) {
  store(view.data, view.dtype, offset(view, index), value);
}

}  // namespace octavo::reference
