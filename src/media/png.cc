#include <png.h>

#include <csetjmp>
#include <cstring>

#include "media/formats.h"

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

// libpng's errors jump: functions that call it hold nothing that must be destroyed.
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
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size has its own
    png_read_info(png_, info_);
    return true;
  }

  // From now on rows are RGB or RGBA of 8 bits.
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
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

Result<Image> decode_png(std::span<const std::byte> file, std::int64_t pixels_max) {
  Reader reader(file);
  const auto broken = [&] { return invalid("", "the PNG image is broken: {}", reader.message()); };
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
  if (reader.has_alpha()) over_white(image.pixels);
  return image;
}

}  // namespace octavo::media
