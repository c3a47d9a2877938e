// Learned positions of a square grid, stretched over the patches of an image of another shape.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

// table: [side * side, dim], row by row. Gives [rows * columns, dim]: between the four nearest ones, with the
// corners of both grids on each other, as Qwen3-VL of transformers does it.
std::vector<float> stretched_positions(std::span<const float> table, int side, std::int64_t dim, int rows,
                                       int columns);

}  // namespace octavo
