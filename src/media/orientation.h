// How a camera was held, as a picture's file says it: EXIF's orientation, or XMP's where there is no EXIF.
#pragma once

#include <string>
#include <string_view>

#include "media/image.h"

namespace octavo::media {

struct Metadata {
  std::string exif;  // a TIFF file, "Exif\0\0" before it or not
  std::string xmp;   // XML
};

// 1 to 8, as EXIF numbers them. 1, upright: the metadata says nothing, or is broken.
int orientation_of(const Metadata& metadata);

// The picture as it is to be seen, as Pillow's ImageOps.exif_transpose gives it.
Image upright(Image image, int orientation);

}  // namespace octavo::media
