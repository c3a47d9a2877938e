#include "media/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "base/check.h"

namespace octavo::media {
namespace {

// Fraction bits of Pillow's weights: 32 bits, minus 8 bits for a pixel and 2 bits against overflow.
constexpr int kFractionBits = 32 - 8 - 2;

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double bicubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

double weight(Filter filter, double x) {
  switch (filter) {
    case Filter::bilinear:
      return std::max(0.0, 1 - std::abs(x));
    case Filter::bicubic:
      return bicubic(x, -0.5);
    case Filter::lanczos:
      return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
  return 0;
}

double support_of(Filter filter) {
  switch (filter) {
    case Filter::bilinear:
      return 1;
    case Filter::bicubic:
      return 2;
    case Filter::lanczos:
      return 3;
  }
  return 0;
}

// The input pixels [first, first + count) of each output pixel of a row, and their weights.
struct Taps {
  struct Range {
    int first;
    int count;
  };
  std::vector<Range> ranges;  // [size]
  int stride = 0;
  int fraction_bits = 0;
  std::vector<std::int32_t> weights;  // [size, stride]
};

// Returns the number of fraction bits in torch: the largest number for which the greatest weight fits into
// 15 bits.
int torch_fraction_bits(double greatest) {
  int bits = 0;
  while (bits < kFractionBits && static_cast<int>(0.5 + greatest * (1 << (bits + 1))) < 1 << 15) ++bits;
  return bits;
}

Taps taps_of(int from, int to, Filter filter, bool torch) {
  const double scale = static_cast<double>(from) / to;
  const double stretch = std::max(scale, 1.0);
  const double support = support_of(filter) * stretch;
  Taps taps;
  taps.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  taps.weights.resize(static_cast<std::size_t>(to) * static_cast<std::size_t>(taps.stride));
  std::vector<double> shares(taps.weights.size());
  for (int i = 0; i < to; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int count = std::min(from, static_cast<int>(center + support + 0.5)) - first;
    double sum = 0;
    const auto row = std::span(shares).subspan(static_cast<std::size_t>(i) * static_cast<std::size_t>(taps.stride),
                                               static_cast<std::size_t>(count));
    for (int k = 0; k < count; ++k) {
      row[static_cast<std::size_t>(k)] = weight(filter, (k + first - center + 0.5) * (1 / stretch));
      sum += row[static_cast<std::size_t>(k)];
    }
    taps.ranges.push_back({first, count});
    if (sum != 0)
      for (double& share : row) share /= sum;
  }
  taps.fraction_bits = torch ? torch_fraction_bits(std::ranges::max(shares)) : kFractionBits;
  std::ranges::transform(shares, taps.weights.begin(), [one = 1 << taps.fraction_bits](double share) {
    return static_cast<std::int32_t>((share < 0 ? -0.5 : 0.5) + share * one);
  });
  return taps;
}

// Four lines (rows or columns) of the input from which an output line is interpolated, and their weights.
// Beyond the edge, the last line is repeated.
struct Four {
  std::array<std::size_t, 4> lines;
  std::array<float, 4> weights;
};
std::vector<Four> fours_of(int from, int to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  std::vector<Four> all;
  for (int i = 0; i < to; ++i) {
    const float at = scale * (static_cast<float>(i) + 0.5F) - 0.5F, first = std::floor(at);
    Four four{};
    for (int k = 0; k < 4; ++k) {
      const auto index = static_cast<std::size_t>(k);
      four.lines[index] = static_cast<std::size_t>(std::clamp(static_cast<int>(first) + k - 1, 0, from - 1));
      four.weights[index] = static_cast<float>(bicubic(at - first - static_cast<float>(k - 1), -0.75));
    }
    all.push_back(four);
  }
  return all;
}

std::uint8_t rounded(std::int32_t sum, int fraction_bits) {
  return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}

Image along_rows(const Image& image, int width, Filter filter, bool torch) {
  const Taps taps = taps_of(image.width, width, filter, torch);
  const int bits = taps.fraction_bits;
  const std::int32_t half = 1 << (bits - 1);
  Image out{width, image.height, {}};
  out.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(image.height) * 3);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.pixels.data() + std::ptrdiff_t{3} * y * image.width;
    for (int x = 0; x < width; ++x) {
      const auto [first, count] = taps.ranges[static_cast<std::size_t>(x)];
      const std::int32_t* weights = taps.weights.data() + static_cast<std::ptrdiff_t>(x) * taps.stride;
      const std::uint8_t* from = row + std::ptrdiff_t{3} * first;
      std::int32_t red = half, green = half, blue = half;
      for (int k = 0; k < count; ++k, from += 3) {
        red += from[0] * weights[k];
        green += from[1] * weights[k];
        blue += from[2] * weights[k];
      }
      *to++ = rounded(red, bits);
      *to++ = rounded(green, bits);
      *to++ = rounded(blue, bits);
    }
  }
  return out;
}

Image along_columns(const Image& image, int height, Filter filter, bool torch) {
  const Taps taps = taps_of(image.height, height, filter, torch);
  const int bits = taps.fraction_bits;
  const std::ptrdiff_t row = std::ptrdiff_t{3} * image.width;
  Image out{image.width, height, {}};
  out.pixels.resize(static_cast<std::size_t>(row) * static_cast<std::size_t>(height));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(row));
  for (int y = 0; y < height; ++y) {
    const auto [first, count] = taps.ranges[static_cast<std::size_t>(y)];
    const std::int32_t* weights = taps.weights.data() + static_cast<std::ptrdiff_t>(y) * taps.stride;
    std::ranges::fill(sums, 1 << (bits - 1));
    for (int k = 0; k < count; ++k) {
      const std::uint8_t* from = image.pixels.data() + (first + k) * row;
      const std::int32_t w = weights[k];
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += from[i] * w;
    }
    std::ranges::transform(sums, out.pixels.begin() + y * row, [bits](std::int32_t sum) { return rounded(sum, bits); });
  }
  return out;
}

}  // namespace

Image resize(const Image& image, int width, int height, Filter filter) {
  CHECK(width > 0 && height > 0 && image.width > 0 && image.height > 0);
  if (width == image.width) return height != image.height ? along_columns(image, height, filter, false) : image;
  if (height == image.height) return along_rows(image, width, filter, false);
  // The order of the axes affects the rounding. This is the order of Pillow 13; earlier versions always
  // begin with rows.
  const int fewer_rows = image.height - height, fewer_columns = image.width - width;
  if (fewer_rows > 0 && fewer_rows > 2 * fewer_columns)
    return along_rows(along_columns(image, height, filter, false), width, filter, false);
  return along_columns(along_rows(image, width, filter, false), height, filter, false);
}

Image resize_as_torch(const Image& image, int width, int height, Filter filter) {
  CHECK(width > 0 && height > 0 && image.width > 0 && image.height > 0);
  if (width == image.width) return height != image.height ? along_columns(image, height, filter, true) : image;
  const Image rows = along_rows(image, width, filter, true);
  return height != image.height ? along_columns(rows, height, filter, true) : rows;
}

std::vector<float> interpolate_bicubic(const Image& image, int width, int height) {
  const std::vector<Four> across = fours_of(image.width, width), down = fours_of(image.height, height);
  std::vector<float> out;
  out.reserve(std::size_t{3} * across.size() * down.size());
  for (const Four& row : down)
    for (const Four& column : across)
      for (std::size_t channel = 0; channel < 3; ++channel) {
        float sum = 0;
        for (std::size_t y = 0; y < 4; ++y) {
          const std::size_t line = row.lines[y] * static_cast<std::size_t>(image.width);
          float along = 0;
          for (std::size_t x = 0; x < 4; ++x)
            along += column.weights[x] * image.pixels[(line + column.lines[x]) * 3 + channel];
          sum += row.weights[y] * along;
        }
        out.push_back(sum);
      }
  return out;
}

Image crop(const Image& image, int left, int top, int size) {
  Image out{size, size, {}};
  out.pixels.reserve(static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3);
  for (int y = top; y < top + size; ++y) {
    const auto row = image.pixels.begin() + (std::ptrdiff_t{y} * image.width + left) * 3;
    out.pixels.insert(out.pixels.end(), row, row + std::ptrdiff_t{3} * size);
  }
  return out;
}

Image plain(int width, int height, std::uint8_t value) {
  return {width, height,
          std::vector<std::uint8_t>(std::size_t{3} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height),
                                    value)};
}

void paste(const Image& from, int left, int top, Image& to) {
  for (int y = 0; y < from.height; ++y)
    std::copy_n(from.pixels.begin() + std::ptrdiff_t{3} * y * from.width, std::ptrdiff_t{3} * from.width,
                to.pixels.begin() + std::ptrdiff_t{3} * ((y + top) * std::ptrdiff_t{to.width} + left));
}

}  // namespace octavo::media
