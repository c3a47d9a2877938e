// Learned positions for patches of images of any size: a square grid that is stretched over the image, or one
// table per axis.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

// Interpolates a grid over rows x columns patches. table: [side * side, dim], row by row. Returns [rows *
// columns, dim]: bilinear interpolation with aligned corners, as in transformers' Qwen3-VL.
std::vector<float> stretched_positions(std::span<const float> table, int side, std::int64_t dim, int rows,
                                       int columns);

// Adds the positions of columns and rows. table: [2 * count, dim], columns first, then rows. Returns [rows *
// columns, dim].
std::vector<float> added_positions(std::span<const float> table, std::int64_t dim, int rows, int columns);

}  // namespace octavo
