// Resampling of images, bit-identical to Pillow. It computes with fixed-point numbers along one axis, rounds
// to 8 bits, and then does the same along the other axis. If the image shrinks, the filter is wider, which
// avoids aliasing. resize_as_torch() is bit-identical to torch's resampling, which has 16-bit weights.
#pragma once

#include <cstdint>
#include <vector>

#include "media/image.h"

namespace octavo::media {

enum class Filter : std::uint8_t { bilinear, bicubic, lanczos };

// `width` and `height` must be at least 1.
Image resize(const Image& image, int width, int height, Filter filter);
Image resize_as_torch(const Image& image, int width, int height, Filter filter);

// Returns f32 [height, width, 3] in [0, 255]. Each value depends on 4 x 4 pixels of `image` at any scale, as
// in torch's bicubic interpolation without antialiasing.
std::vector<float> interpolate_bicubic(const Image& image, int width, int height);

// Cuts out a square with sides of `size` pixels. The square must be inside the image.
Image crop(const Image& image, int left, int top, int size);

Image plain(int width, int height, std::uint8_t value);

// Copies `from` into `to`. The copy must fit into `to`.
void paste(const Image& from, int left, int top, Image& to);

}  // namespace octavo::media
