// Random tensors and sequences in KV blocks, for tests of operators.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/backends.h"

namespace octavo {

// A tensor that owns its memory.
class TestTensor {
 public:
  TestTensor() = default;
  TestTensor(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
    bytes_.resize(static_cast<std::size_t>(elements()) * size_of(dtype) + 64);
  }
  std::int64_t elements() const {
    return std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
  }
  View view() const {
    View v{const_cast<std::byte*>(bytes_.data()), dtype_, static_cast<int>(shape_.size()), {}, {}};
    std::int64_t step = 1;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      v.shape[i] = shape_[i];
      v.stride[i] = step;
      step *= shape_[i];
    }
    return v;
  }
  float operator[](std::int64_t i) const {
    switch (dtype_) {
      case DType::bf16:
        return to_f32(reinterpret_cast<const BFloat16*>(bytes_.data())[i]);
      case DType::f16:
        return to_f32(reinterpret_cast<const Float16*>(bytes_.data())[i]);
      default:
        return reinterpret_cast<const float*>(bytes_.data())[i];
    }
  }
  void set(std::int64_t i, float value) {
    switch (dtype_) {
      case DType::bf16:
        reinterpret_cast<BFloat16*>(bytes_.data())[i] = to_bf16(value);
        return;
      case DType::f16:
        reinterpret_cast<Float16*>(bytes_.data())[i] = to_f16(value);
        return;
      default:
        reinterpret_cast<float*>(bytes_.data())[i] = value;
    }
  }
  DType dtype() const { return dtype_; }
  std::byte* data() { return bytes_.data(); }
  TestTensor rows(std::int64_t begin, std::int64_t count) const {
    std::vector<std::int64_t> shape = shape_;
    const std::int64_t row = elements() / shape[0];
    shape[0] = count;
    TestTensor part(dtype_, shape);
    for (std::int64_t i = 0; i < count * row; ++i) part.set(i, (*this)[begin * row + i]);
    return part;
  }
  bool operator==(const TestTensor& other) const {
    return dtype_ == other.dtype_ && shape_ == other.shape_ &&
           std::equal(bytes_.begin(), bytes_.end() - 64, other.bytes_.begin());
  }

 private:
  DType dtype_ = DType::f32;
  std::vector<std::int64_t> shape_;
  std::vector<std::byte> bytes_;
};

class TestRandom {
 public:
  explicit TestRandom(unsigned seed) : engine_(seed) {}
  int integer(int low, int high) { return std::uniform_int_distribution(low, high)(engine_); }
  float real(float low, float high) { return std::uniform_real_distribution(low, high)(engine_); }
  bool coin() { return integer(0, 1) == 1; }
  template <class T>
  T pick(std::initializer_list<T> items) {
    return items.begin()[integer(0, static_cast<int>(items.size()) - 1)];
  }
  TestTensor tensor(DType dtype, std::vector<std::int64_t> shape, float low = -1, float high = 1) {
    TestTensor t(dtype, std::move(shape));
    for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, real(low, high));
    return t;
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    std::shuffle(items.begin(), items.end(), engine_);
  }

 private:
  std::mt19937 engine_;
};

// Returns the largest |a - b| / (absolute + relative |b|); infinity if exactly one of a and b is NaN.
inline double difference(const TestTensor& a, const TestTensor& b, double absolute, double relative) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      if (std::isnan(a[i]) != std::isnan(b[i])) return std::numeric_limits<double>::infinity();
      continue;
    }
    if (a[i] == b[i]) continue;
    largest = std::max(largest, std::abs(double{a[i]} - b[i]) / (absolute + relative * std::abs(b[i])));
  }
  return largest;
}

// Returns the relative size of one unit in the last place. Results that differ slightly before rounding can
// differ by one unit afterwards.
inline double last_digit(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-7 : dtype == DType::f16 ? 0x1p-10 : 0x1p-22;
}

}  // namespace octavo
