// Learned positions of the patches of an image of any shape: those of a square grid, stretched, or of two
// axes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

// table: [side * side, dim], row by row. Gives [rows * columns, dim]: between the four nearest ones, with the
// corners of both grids on each other, as Qwen3-VL of transformers does it.
std::vector<float> stretched_positions(std::span<const float> table, int side, std::int64_t dim, int rows,
                                       int columns);

// table: [2 * count, dim], of columns, then of rows. Gives [rows * columns, dim]: the sum of both.
std::vector<float> added_positions(std::span<const float> table, std::int64_t dim, int rows, int columns);

}  // namespace octavo
