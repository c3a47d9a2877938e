#include "model/position_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace octavo {
namespace {

// A position on one axis of the table, and its weight in the interpolation.
struct Tap {
  int index;
  float weight;
};
std::array<Tap, 2> taps(int index, int size, int side) {
  const float at =
      static_cast<float>(index) * static_cast<float>(side - 1) / static_cast<float>(std::max(1, size - 1));
  const int before = static_cast<int>(std::floor(at));
  const float share = at - static_cast<float>(before);
  return {Tap{std::min(before, side - 1), 1 - share}, Tap{std::min(before + 1, side - 1), share}};
}

}  // namespace

std::vector<float> stretched_positions(std::span<const float> table, int side, std::int64_t dim, int rows,
                                       int columns) {
  const auto width = static_cast<std::size_t>(dim);
  std::vector<float> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * width);
  auto to = out.begin();
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column, to += dim)
      for (const Tap down : taps(row, rows, side))
        for (const Tap across : taps(column, columns, side)) {
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
