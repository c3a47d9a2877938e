#include "weights/quantize.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"
#include "tensor/dequantize.h"

namespace octavo {
namespace {

constexpr std::int64_t kColumnsMultiple = 32;  // that the kernels multiply at a time

// The codes of one group of a row.
struct Group {
  float scale = 0;
  int zero = 0;
};

int coded(float value, const Group& group, int most) {
  if (group.scale == 0) return group.zero;
  return std::clamp(static_cast<int>(std::lround(value / group.scale)) + group.zero, 0, most);
}

Group int8_group(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return {largest / 127, 128};
}

double squared_error(std::span<const float> values, const Group& group) {
  double sum = 0;
  for (const float value : values) {
    const double error = value - group.scale * static_cast<float>(coded(value, group, 15) - group.zero);
    sum += error * error;
  }
  return sum;
}

// A range a little narrower than the values' clips the outliers and is finer for all others.
Group int4_group(std::span<const float> values) {
  const auto [low, high] = std::ranges::minmax(values);
  Group best;
  double least = 0;
  for (const float share : {1.0f, 0.95f, 0.9f, 0.85f, 0.8f, 0.75f}) {
    const float from = std::min(low, 0.0f) * share, to = std::max(high, 0.0f) * share;
    Group group{(to - from) / 15, 0};
    if (group.scale > 0) group.zero = static_cast<int>(std::lround(-from / group.scale));
    const double error = squared_error(values, group);
    if (share < 1 && error >= least) continue;
    best = group;
    least = error;
  }
  return best;
}

}  // namespace

Result<QuantizedMatrix> quantize(const View& matrix, Encoding encoding, ThreadPool& pool) {
  CHECK(encoding == Encoding::int8 || encoding == Encoding::int4, "{} is not made here", name(encoding));
  const std::int64_t rows = matrix.size(0), cols = matrix.size(1);
  const bool int8 = encoding == Encoding::int8;
  const std::int64_t group = int8 ? cols : std::min(cols, kInt4Group);
  if (cols % group != 0 || cols % kColumnsMultiple != 0)
    return invalid("quantization", "{} needs a multiple of {} columns, a matrix has {}", name(encoding),
                   int8 ? kColumnsMultiple : kInt4Group, cols);
  const std::int64_t groups = cols / group;
  QuantizedMatrix out;
  out.codes.resize(static_cast<std::size_t>(rows * cols));
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
        const auto place = static_cast<std::size_t>(row * groups + g);
        out.scales[place] = chosen.scale;
        if (!int8) out.zeros[place] = static_cast<std::uint8_t>(chosen.zero);
        std::ranges::transform(part, out.codes.begin() + row * cols + g * group, [&](float value) {
          return static_cast<std::uint8_t>(coded(value, chosen, int8 ? 255 : 15));
        });
      }
    }
  });
  out.part = {.encoding = encoding,
              .values = View::of(out.codes.data(), DType::u8, {rows, cols}),
              .scales = View::of(out.scales.data(), DType::f32, {rows, groups}),
              .zeros = int8 ? View{} : View::of(out.zeros.data(), DType::u8, {rows, groups})};
  return out;
}

}  // namespace octavo
