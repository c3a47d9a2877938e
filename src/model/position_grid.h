// Learned positions for the patches of images of any size: a square grid that is stretched over the image, or
// one table per axis.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/inputs/specs.h"

namespace octavo {

// Interpolates `table` [side * side, dim] over rows x columns patches, as torch's F.interpolate does. Returns
// [rows * columns, dim].
std::vector<float> stretched_positions(std::span<const float> table, int side, std::int64_t dim, int rows,
                                       int columns, PositionStretch stretch);

// Returns for each patch the position of its column plus the position of its row, [rows * columns, dim].
// `table` [2 * count, dim] has the columns first.
std::vector<float> added_positions(std::span<const float> table, std::int64_t dim, int rows, int columns);

}  // namespace octavo
