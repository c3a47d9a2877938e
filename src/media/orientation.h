// Orientation of the camera as the image's file records it: EXIF, or XMP without EXIF.
#pragma once

#include <string>
#include <string_view>

#include "media/image.h"

namespace octavo::media {

struct Metadata {
  std::string exif;  // a TIFF file, with or without "Exif\0\0" before it
  std::string xmp;   // XML
};

// 1 to 8, EXIF's values. 1 (upright) if the metadata is missing or broken.
int orientation_of(const Metadata& metadata);

// Returns the image upright, as Pillow's ImageOps.exif_transpose does.
Image upright(Image image, int orientation);

}  // namespace octavo::media
