// Resampling as Pillow does it, bit for bit: a filter as wide as the picture shrinks (so that nothing aliases),
// in fixed point, first along rows, then along columns, rounded to 8 bits in between. Or as torch does it, whose weights
// have 16 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "media/image.h"

namespace octavo::media {

enum class Filter : std::uint8_t { bilinear, bicubic, lanczos };

// width, height: at least 1.
Image resize(const Image& image, int width, int height, Filter filter);
Image resize_as_torch(const Image& image, int width, int height, Filter filter);

// Numbers f32 [height, width, 3] between the pixels, 0 to 255: of 4 x 4 neighbours each, however much the image
// shrinks. As torch's bicubic interpolation has it.
std::vector<float> interpolate_bicubic(const Image& image, int width, int height);

// A square of so many pixels a side, which lies within the image.
Image crop(const Image& image, int left, int top, int size);

// Of one value.
Image plain(int width, int height, std::uint8_t value);

// Puts one image into another, within which it lies.
void paste(const Image& from, int left, int top, Image& to);

}  // namespace octavo::media
