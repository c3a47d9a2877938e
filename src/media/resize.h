// Resampling of images, bit-identical to Pillow: fixed-point numbers, first along rows, then along columns,
// rounded to 8 bits in between. If the image shrinks, the filter is wider, against aliasing.
// resize_as_torch() equals torch's resampling, with 16-bit weights.
#pragma once

#include <cstdint>
#include <vector>

#include "media/image.h"

namespace octavo::media {

enum class Filter : std::uint8_t { bilinear, bicubic, lanczos };

// width, height: at least 1.
Image resize(const Image& image, int width, int height, Filter filter);
Image resize_as_torch(const Image& image, int width, int height, Filter filter);

// Returns f32 [height, width, 3] in [0, 255]. Each value depends on 4 x 4 neighbours at any scale, as in
// torch's bicubic interpolation.
std::vector<float> interpolate_bicubic(const Image& image, int width, int height);

// Cuts out a square with sides of `size` pixels, which must be inside the image.
Image crop(const Image& image, int left, int top, int size);

// Returns an image in which all bytes are `value`.
Image plain(int width, int height, std::uint8_t value);

// Copies an image into a larger one, in which it must fit.
void paste(const Image& from, int left, int top, Image& to);

}  // namespace octavo::media
