// Decodes the first picture of a GIF file, as Pillow does.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "media/formats.h"

namespace octavo::media {
namespace {

struct CloseGif {
  void operator()(GifFileType* file) const {
    int ignored = 0;
    DGifCloseFile(file, &ignored);
  }
};
using GifFile = std::unique_ptr<GifFileType, CloseGif>;

std::unexpected<Error> damaged_gif() { return invalid("", "the GIF image is damaged or ends early"); }

// giflib's callback: file->UserData is the part of the file that is not read yet.
int read_gif(GifFileType* file, GifByteType* out, int most) {
  auto& left = *static_cast<std::span<const std::byte>*>(file->UserData);
  const std::size_t count = std::min(left.size(), static_cast<std::size_t>(most));
  std::memcpy(out, left.data(), count);
  left = left.subspan(count);
  return static_cast<int>(count);
}

bool skip_extension(GifFileType& file) {
  int code = 0;
  GifByteType* block = nullptr;
  if (DGifGetExtension(&file, &code, &block) == GIF_ERROR) return false;
  while (block != nullptr)
    if (DGifGetExtensionNext(&file, &block) == GIF_ERROR) return false;
  return true;
}

// Reads up to the description of the first picture.
bool find_picture(GifFileType& file) {
  for (;;) {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(&file, &record) == GIF_ERROR) return false;
    if (record == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(&file) != GIF_ERROR;
    if (record != EXTENSION_RECORD_TYPE || !skip_extension(file)) return false;
  }
}

// Returns the row of the picture that an interlaced file stores as the i-th.
int row_of(int i, int rows) {
  constexpr std::array<std::pair<int, int>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [first, step] : kPasses) {
    const int count = rows > first ? (rows - first + step - 1) / step : 0;
    if (i < count) return first + i * step;
    i -= count;
  }
  return 0;
}

// A colour that the palette lacks is black.
void set_colour(std::uint8_t* pixel, const ColorMapObject* palette, int index) {
  const bool known = palette != nullptr && index < palette->ColorCount;
  const GifColorType colour = known ? palette->Colors[index] : GifColorType{0, 0, 0};
  pixel[0] = colour.Red;
  pixel[1] = colour.Green;
  pixel[2] = colour.Blue;
}

// Reads the picture that find_picture() has found.
bool draw(GifFileType& file, Image& image) {
  const GifImageDesc& picture = file.Image;
  if (picture.Left + picture.Width > image.width || picture.Top + picture.Height > image.height) return false;
  const ColorMapObject* const palette = picture.ColorMap != nullptr ? picture.ColorMap : file.SColorMap;
  std::vector<GifPixelType> line(static_cast<std::size_t>(picture.Width));
  for (int y = 0; y < picture.Height; ++y) {
    if (DGifGetLine(&file, line.data(), picture.Width) == GIF_ERROR) return false;
    const int row = picture.Top + (picture.Interlace ? row_of(y, picture.Height) : y);
    std::uint8_t* out =
        image.pixels.data() + (static_cast<std::size_t>(row) * static_cast<std::size_t>(image.width) +
                               static_cast<std::size_t>(picture.Left)) *
                                  3;
    for (const GifPixelType index : line) {
      set_colour(out, palette, index);
      out += 3;
    }
  }
  return true;
}

}  // namespace

Result<Image> decode_gif(std::span<const std::byte> bytes, std::int64_t pixels_max) {
  int ignored = 0;
  const GifFile file(DGifOpen(&bytes, read_gif, &ignored));
  if (file == nullptr) return damaged_gif();
  Image image{file->SWidth, file->SHeight, {}};
  TRY_VOID(check_size(image.width, image.height, pixels_max));
  if (!find_picture(*file)) return damaged_gif();
  image.pixels.resize(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    set_colour(&image.pixels[i], file->SColorMap, file->SBackGroundColor);
  if (!draw(*file, image)) return damaged_gif();
  return image;
}

}  // namespace octavo::media
