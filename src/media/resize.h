// Resampling, bit-identical to Pillow: a filter as wide as the image shrinks (against aliasing), in fixed
// point, first along rows, then along columns, rounded to 8 bits in between. Or as torch does it, with 16-bit
// weights.
#pragma once

#include <cstdint>
#include <vector>

#include "media/image.h"

namespace octavo::media {

enum class Filter : std::uint8_t { bilinear, bicubic, lanczos };

// width, height: at least 1.
Image resize(const Image& image, int width, int height, Filter filter);
Image resize_as_torch(const Image& image, int width, int height, Filter filter);

// Returns f32 [height, width, 3] in 0 .. 255. Each value comes from 4 x 4 neighbours, at any scale, as
// torch's bicubic interpolation does.
std::vector<float> interpolate_bicubic(const Image& image, int width, int height);

// A square of `size` pixels per side, inside the image.
Image crop(const Image& image, int left, int top, int size);

// An image with one value everywhere.
Image plain(int width, int height, std::uint8_t value);

// Copies an image into a larger one; it must fit.
void paste(const Image& from, int left, int top, Image& to);

}  // namespace octavo::media
