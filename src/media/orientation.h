// Reads the orientation of an image from its EXIF data or, if EXIF data are missing, from its XMP data.
#pragma once

#include <string>
#include <string_view>

#include "media/image.h"

namespace octavo::media {

struct Metadata {
  std::string exif;  // TIFF file; the prefix "Exif\0\0" is optional
  std::string xmp;
};

// Returns the orientation as in EXIF, 1 to 8. Returns 1 (upright) if the metadata is missing or broken.
int orientation_of(const Metadata& metadata);

// Rotates or mirrors the image until it is upright, as Pillow's ImageOps.exif_transpose does.
Image upright(Image image, int orientation);

}  // namespace octavo::media
