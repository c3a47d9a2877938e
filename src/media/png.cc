#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "media/formats.h"
#include "media/orientation.h"

namespace octavo::media {
namespace {

struct Source {
  std::span<const std::byte> left;
  char message[128] = "broken";
};

void read_bytes(png_structp png, png_bytep out, png_size_t count) {
  Source& source = *static_cast<Source*>(png_get_io_ptr(png));
  if (count > source.left.size()) png_error(png, "the file ends early");
  std::memcpy(out, source.left.data(), count);
  source.left = source.left.subspan(count);
}

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  Source& source = *static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source.message, message, sizeof source.message - 1);
  std::longjmp(png_jmpbuf(png), 1);
}
void ignore(png_structp, png_const_charp) {}

// Decodes a profile that ImageMagick has stored as text: three lines (empty, name, size), then hexadecimal
// bytes.
std::string bytes_of_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
    if (digit == std::string_view::npos) continue;
    if (high >= 0) bytes += static_cast<char>(high * 16 + static_cast<int>(digit));
    high = high >= 0 ? -1 : static_cast<int>(digit);
  }
  return bytes;
}

// libpng reports errors with longjmp, so functions that call libpng must have no objects with destructors.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : source_{.left = file} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, fail, ignore);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const char* message() const { return source_.message; }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  std::int64_t height() const { return png_get_image_height(png_, info_); }
  bool has_alpha() const { return png_get_channels(png_, info_) == 4; }

  bool read_header() {
    if (info_ == nullptr || setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &source_, read_bytes);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size() limits the size instead
    png_read_info(png_, info_);
    return true;
  }

  // Reads the header. Sets options so that rows are RGB or RGBA with 8 bits per channel.
  bool begin() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, info_);
    return true;
  }

  // Returns the metadata of the whole file. Call it after all rows are read.
  Metadata metadata() const {
    Metadata found;
    png_bytep exif = nullptr;
    png_uint_32 size = 0;
    if (png_get_eXIf_1(png_, info_, &size, &exif) != 0) found.exif.assign(reinterpret_cast<const char*>(exif), size);
    png_textp texts = nullptr;
    const int count = png_get_text(png_, info_, &texts, nullptr);
    for (int i = 0; i < count; ++i) {
      const std::string_view key = texts[i].key, text = texts[i].text != nullptr ? texts[i].text : "";
      if (key == "XML:com.adobe.xmp") found.xmp = text;
      if (key == "Raw profile type exif" && found.exif.empty()) found.exif = bytes_of_profile(text);
    }
    return found;
  }

 private:
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

Result<Image> decode_png(std::span<const std::byte> file, std::int64_t pixels_max, const Colour& background) {
  Reader reader(file);
  const auto broken = [&] { return invalid("", "the PNG image is damaged: {}", reader.message()); };
  if (!reader.read_header()) return broken();
  TRY_VOID(check_size(reader.width(), reader.height(), pixels_max));
  if (!reader.begin()) return broken();
  Image image{static_cast<int>(reader.width()), static_cast<int>(reader.height()), {}};
  const std::size_t row = static_cast<std::size_t>(image.width) * (reader.has_alpha() ? 4 : 3);
  image.pixels.resize(row * static_cast<std::size_t>(image.height));
  std::vector<png_bytep> rows;
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y)
    rows.push_back(image.pixels.data() + y * row);
  if (!reader.read_rows(rows.data())) return broken();
  if (reader.has_alpha()) over(background, image.pixels);
  return upright(std::move(image), orientation_of(reader.metadata()));
}

}  // namespace octavo::media
