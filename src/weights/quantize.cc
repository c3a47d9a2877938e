#include "weights/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "base/check.h"
#include "tensor/dequantize.h"

namespace octavo {
namespace {

// A vector of four floats, which every processor supports.
using Lanes [[gnu::vector_size(16)]] = float;
constexpr std::int64_t kLanes = 4;

Lanes load(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
Lanes least(Lanes a, Lanes b) { return a < b ? a : b; }
Lanes most(Lanes a, Lanes b) { return a > b ? a : b; }

// Range of a group of columns. A code is value / scale + zero, rounded to nearest, in [0, largest].
struct Group {
  float scale = 0;
  float zero = 0;
  float largest = 0;
  float inverse = scale > 0 ? 1 / scale : 0;

  Lanes codes(Lanes values) const {
    constexpr float kRounder = 0x1.8p23f;  // adding and subtracting it rounds to the nearest integer
    return least(most(values * inverse + zero, Lanes{}), Lanes{} + largest) + kRounder - kRounder;
  }
};

struct Range {
  float low = 0;
  float high = 0;
};

// Minimum and maximum of the values, including 0.
Range range_of(std::span<const float> values) {
  Lanes low{}, high{};
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    low = least(low, load(&values[i]));
    high = most(high, load(&values[i]));
  }
  Range range;
  for (int lane = 0; lane < kLanes; ++lane) {
    range.low = std::min(range.low, low[lane]);
    range.high = std::max(range.high, high[lane]);
  }
  return range;
}

float squared_error(std::span<const float> values, const Group& group) {
  Lanes sums[4] = {};  // independent sums, so that the processor can overlap additions
  static_assert(kColumnsMultiple % (4 * kLanes) == 0);
  for (std::size_t i = 0; i < values.size(); i += 4 * kLanes)
    for (std::size_t j = 0; j < 4; ++j) {
      const Lanes value = load(&values[i + j * kLanes]);
      const Lanes error = value - group.scale * (group.codes(value) - group.zero);
      sums[j] += error * error;
    }
  const Lanes sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

Group int8_group(std::span<const float> values) {
  const Range range = range_of(values);
  return {std::max(-range.low, range.high) / 127, 128, 255};
}

// Tries several ranges. A narrower range clips outliers, but has smaller steps for the remaining values.
Group int4_group(std::span<const float> values) {
  const Range range = range_of(values);
  Group best{0, 0, 15};
  float least_error = std::numeric_limits<float>::infinity();
  for (const float share : {1.0f, 0.95f, 0.9f, 0.85f, 0.8f, 0.75f}) {
    const float step = (range.high - range.low) * share / 15;
    const Group group{step, step > 0 ? std::nearbyint(-range.low * share / step) : 0, 15};
    const float error = squared_error(values, group);
    if (error >= least_error) continue;
    best = group;
    least_error = error;
  }
  return best;
}

}  // namespace

void QuantizedMatrix::set_part(Encoding encoding, std::int64_t rows, std::int64_t cols) {
  const std::int64_t groups = std::ssize(scales) / std::max<std::int64_t>(1, rows);
  part = {.encoding = encoding,
          .values = codes.view(DType::u8, {rows, cols}),
          .scales = View::of(scales.data(), DType::f32, {rows, groups})};
  if (std::ranges::any_of(zeros, [&](int zero) { return zero != zero_of(encoding); }))
    part.zeros = View::of(zeros.data(), DType::u8, {rows, groups});
}

Result<QuantizedMatrix> quantize(const View& matrix, Encoding encoding, ThreadPool& pool) {
  CHECK(encoding == Encoding::int8 || encoding == Encoding::int4,
        "{} cannot be computed while loading: use int8 or int4", name(encoding));
  const std::int64_t rows = matrix.size(0), cols = matrix.size(1);
  const bool int8 = encoding == Encoding::int8;
  if (cols % kColumnsMultiple != 0)
    return invalid("quantization",
                   "{} needs matrices whose number of columns is a multiple of {}, but one matrix has {}",
                   name(encoding), kColumnsMultiple, cols);
  const std::int64_t groups = groups_of(encoding, cols), group = cols / groups;
  QuantizedMatrix out;
  TRY(out.codes, allocate_host(static_cast<std::size_t>(rows * cols)));
  out.scales.resize(static_cast<std::size_t>(rows * groups));
  if (!int8) out.zeros.resize(out.scales.size());
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> values(static_cast<std::size_t>(cols));
    for (std::int64_t row = begin; row < end; ++row) {
      dequantize({.values = matrix}, row, values.data());
      for (std::int64_t g = 0; g < groups; ++g) {
        const auto part =
            std::span(values).subspan(static_cast<std::size_t>(g * group), static_cast<std::size_t>(group));
        const Group chosen = int8 ? int8_group(part) : int4_group(part);
        const auto index = static_cast<std::size_t>(row * groups + g);
        out.scales[index] = chosen.scale;
        if (!int8) out.zeros[index] = static_cast<std::uint8_t>(chosen.zero);
        std::uint8_t* codes = static_cast<std::uint8_t*>(out.codes.data()) + row * cols + g * group;
        for (std::size_t k = 0; k < part.size(); k += kLanes) {
          const Lanes made = chosen.codes(load(&part[k]));
          for (int lane = 0; lane < kLanes; ++lane)
            codes[k + static_cast<std::size_t>(lane)] =
                static_cast<std::uint8_t>(static_cast<int>(made[lane]));
        }
      }
    }
  });
  out.set_part(encoding, rows, cols);
  return out;
}

}  // namespace octavo
