#include "model/position_grid.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

// A position on one axis of the table, and its weight in the interpolation.
struct Tap {
  int index;
  float weight;
};
using Taps = std::vector<Tap>;

Taps linear_taps(float at, int side) {
  const int before = static_cast<int>(std::floor(at));
  const float share = at - static_cast<float>(before);
  return {Tap{std::min(before, side - 1), 1 - share}, Tap{std::min(before + 1, side - 1), share}};
}

// Keys' cubic kernel with a = -0.75.
Taps cubic_taps(float at, int side) {
  constexpr float kA = -0.75F;
  const int before = static_cast<int>(std::floor(at));
  const float share = at - static_cast<float>(before);
  const auto near = [](float x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  const float weights[] = {far(share + 1), near(share), near(1 - share), far(2 - share)};
  Taps taps;
  for (int i = 0; i < 4; ++i) taps.push_back({std::clamp(before - 1 + i, 0, side - 1), weights[i]});
  return taps;
}

// A triangle that covers at least one position on each side of `centre`.
Taps triangle_taps(float centre, float scale, int side) {
  const float support = std::max(1.0F, scale);
  const int first = std::max(0, static_cast<int>(centre - support + 0.5F));
  const int end = std::min(side, static_cast<int>(centre + support + 0.5F));
  Taps taps;
  float sum = 0;
  for (int i = first; i < end; ++i) {
    const float away = std::abs((static_cast<float>(i) - centre + 0.5F) / support);
    taps.push_back({i, std::max(0.0F, 1 - away)});
    sum += taps.back().weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

Taps taps_of(int index, int size, int side, PositionStretch stretch) {
  const float scale = static_cast<float>(side) / static_cast<float>(size);
  const float centre = (static_cast<float>(index) + 0.5F) * scale;
  switch (stretch) {
    case PositionStretch::corners:
      return linear_taps(static_cast<float>(index) * static_cast<float>(side - 1) /
                             static_cast<float>(std::max(1, size - 1)),
                         side);
    case PositionStretch::bilinear:
      return linear_taps(std::max(0.0F, centre - 0.5F), side);
    case PositionStretch::antialiased:
      return triangle_taps(centre, scale, side);
    case PositionStretch::bicubic:
      return cubic_taps(centre - 0.5F, side);
    case PositionStretch::cropped:
      break;  // stretched_positions() changes the size
  }
  return {};
}

}  // namespace

std::vector<float> stretched_positions(std::span<const float> table, int side, std::int64_t dim, int rows,
                                       int columns, PositionStretch stretch) {
  const auto width = static_cast<std::size_t>(dim);
  std::vector<float> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * width);
  const bool cropped = stretch == PositionStretch::cropped;
  if (cropped) stretch = PositionStretch::bilinear;
  const int longer = std::max(rows, columns), all_rows = cropped ? longer : rows,
            all_columns = cropped ? longer : columns;
  std::vector<Taps> of_columns;
  for (int column = 0; column < columns; ++column)
    of_columns.push_back(taps_of(column, all_columns, side, stretch));
  auto to = out.begin();
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column, to += dim)
      for (const Tap down : taps_of(row, all_rows, side, stretch))
        for (const Tap across : of_columns[static_cast<std::size_t>(column)]) {
          const auto from =
              table.subspan(static_cast<std::size_t>(down.index * side + across.index) * width, width);
          const float weight = down.weight * across.weight;
          std::ranges::transform(from, std::span(to, width), to,
                                 [weight](float value, float sum) { return sum + value * weight; });
        }
  return out;
}

std::vector<float> added_positions(std::span<const float> table, std::int64_t dim, int rows, int columns) {
  const auto width = static_cast<std::size_t>(dim);
  const std::span<const float> of_rows = table.subspan(table.size() / 2);
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * width);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
    for (std::size_t column = 0; column < static_cast<std::size_t>(columns); ++column)
      for (std::size_t k = 0; k < width; ++k)
        out.push_back(table[column * width + k] + of_rows[row * width + k]);
  return out;
}

}  // namespace octavo
