#include "media/orientation.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace octavo::media {
namespace {

constexpr std::string_view kExifBegin{"Exif\0\0", 6};
constexpr std::size_t kOrientationTag = 0x0112;

// Reads integers of a TIFF file, in the byte order of the file.
class Tiff {
 public:
  Tiff(std::string_view bytes, bool little) : bytes_(bytes), little_(little) {}

  std::optional<std::size_t> number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return std::nullopt;
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

// Returns the value of a directory entry, or nullopt if the value is not an integer. An entry consists of a
// tag, a type, a count, and a value or an offset.
std::optional<std::size_t> entry_value(const Tiff& tiff, std::size_t at) {
  const auto type = tiff.number(at + 2, 2), count = tiff.number(at + 4, 4);
  const bool is_short = type == 3 || type == 8, is_long = type == 4 || type == 9;
  if (!count || *count == 0 || (!is_short && !is_long)) return std::nullopt;
  const std::size_t size = is_short ? 2 : 4;
  if (*count * size <= 4) return tiff.number(at + 8, size);
  const auto elsewhere = tiff.number(at + 8, 4);
  return elsewhere ? tiff.number(*elsewhere, size) : std::nullopt;
}

// Returns the orientation in the first directory. If there are several entries, the last one is used.
std::optional<std::size_t> exif_orientation(std::string_view exif) {
  while (exif.starts_with(kExifBegin)) exif.remove_prefix(kExifBegin.size());
  const bool little = exif.starts_with("II");
  if (!little && !exif.starts_with("MM")) return std::nullopt;
  const Tiff tiff(exif, little);
  const auto directory = tiff.number(4, 4);
  const auto count = directory ? tiff.number(*directory, 2) : std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; count && i < *count; ++i) {
    const std::size_t at = *directory + 2 + 12 * i;
    const auto tag = tiff.number(at, 2);
    if (!tag || !tiff.number(at + 8, 4)) break;
    if (tag == kOrientationTag)
      if (const auto value = entry_value(tiff, at)) found = value;
  }
  return found;
}

std::optional<std::size_t> xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    if (rest.starts_with("=\""))
      rest.remove_prefix(2);
    else if (rest.starts_with(">"))
      rest.remove_prefix(1);
    else
      continue;
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return static_cast<std::size_t>(rest[0] - '0');
  }
  return std::nullopt;
}

}  // namespace

int orientation_of(const Metadata& metadata) {
  const auto exif = exif_orientation(metadata.exif);
  const std::size_t found = exif ? *exif : xmp_orientation(metadata.xmp).value_or(1);
  return found >= 1 && found <= 8 ? static_cast<int>(found) : 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1) return image;
  const bool swaps = orientation >= 5;  // rows become columns
  // Whether the order of columns or rows is reversed.
  const bool columns_back = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool rows_back = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image out{swaps ? image.height : image.width, swaps ? image.width : image.height, {}};
  out.pixels.resize(image.pixels.size());
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x, to += 3) {
      const int column = swaps ? y : x, row = swaps ? x : y;
      const int from_x = columns_back ? image.width - 1 - column : column;
      const int from_y = rows_back ? image.height - 1 - row : row;
      const std::size_t from = static_cast<std::size_t>(from_y) * static_cast<std::size_t>(image.width) +
                               static_cast<std::size_t>(from_x);
      std::memcpy(to, image.pixels.data() + 3 * from, 3);
    }
  return out;
}

}  // namespace octavo::media
