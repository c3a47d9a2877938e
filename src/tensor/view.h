// A tensor in memory that another object owns: address, element type, shape and strides.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/check.h"
#include "tensor/dtype.h"

namespace octavo {

// Has up to four dimensions. Strides count elements. An empty View (data == nullptr) means that a tensor is
// missing.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<std::int64_t, 4> shape{};
  std::array<std::int64_t, 4> stride{};

  // Returns a row-major view of contiguous memory.
  static View of(void* data, DType dtype, std::initializer_list<std::int64_t> shape) {
    View v{data, dtype, static_cast<int>(shape.size()), {}, {}};
    CHECK(shape.size() <= 4);
    std::int64_t step = 1;
    for (int i = v.rank - 1; i >= 0; --i) {
      v.shape[static_cast<std::size_t>(i)] = shape.begin()[i];
      v.stride[static_cast<std::size_t>(i)] = step;
      step *= shape.begin()[i];
    }
    return v;
  }
  template <class T>
  static View of(std::span<T> items) {
    return of(const_cast<std::remove_const_t<T>*>(items.data()), dtype_of<std::remove_const_t<T>>,
              {static_cast<std::int64_t>(items.size())});
  }

  constexpr explicit operator bool() const { return data != nullptr; }
  constexpr std::int64_t size(int axis) const { return shape[static_cast<std::size_t>(axis)]; }
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= size(i);
    return n;
  }
  std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(size_of(dtype)); }

  bool contiguous() const {
    std::int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (size(i) != 1 && stride[static_cast<std::size_t>(i)] != step) return false;
      step *= size(i);
    }
    return true;
  }

  // Returns the address. T must be the element type.
  template <class T>
  T* as() const {
    CHECK(dtype == dtype_of<T>, "view holds {}, requested as {}", name(dtype), name(dtype_of<T>));
    return static_cast<T*>(data);
  }
  // Returns the address of slice i along the first axis. T must be the element type.
  template <class T>
  T* row(std::int64_t i) const {
    return static_cast<T*>(data) + i * stride[0];
  }

  // Returns the slices [begin, begin + count) along the first axis.
  View rows(std::int64_t begin, std::int64_t count) const {
    CHECK(rank >= 1 && begin >= 0 && count >= 0 && begin + count <= size(0), "rows [{}, {}) of {}", begin,
          begin + count, size(0));
    View v = *this;
    v.data = static_cast<std::byte*>(data) + begin * stride[0] * static_cast<std::int64_t>(size_of(dtype));
    v.shape[0] = count;
    return v;
  }

  View columns(std::int64_t begin, std::int64_t count) const {
    CHECK(rank == 2 && begin >= 0 && count >= 0 && begin + count <= size(1), "columns [{}, {}) of {}", begin,
          begin + count, size(1));
    View v = *this;
    v.data = static_cast<std::byte*>(data) + begin * stride[1] * static_cast<std::int64_t>(size_of(dtype));
    v.shape[1] = count;
    return v;
  }
};

}  // namespace octavo
