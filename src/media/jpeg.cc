#include <cstdio>  // jpeglib.h needs FILE

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "media/formats.h"
#include "media/orientation.h"

namespace octavo::media {
namespace {

// Maximum number of scans of a progressive file. The decoder processes the whole image for each scan,
// although a scan may have only a few bytes. Real files have about a dozen scans.
constexpr int kScansMax = 100;

struct Failure {
  jpeg_error_mgr base;  // first member, because the decoder casts to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "broken";
};

[[noreturn]] void fail(j_common_ptr jpeg) {
  Failure& failure = *reinterpret_cast<Failure*>(jpeg->err);
  jpeg->err->format_message(jpeg, failure.message);
  std::longjmp(failure.jump, 1);
}

// Makes an incomplete file an error. Without this, the decoder fills missing data with grey.
void fail_at_end(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF) fail(jpeg);
}

void count_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kScansMax) return;
  Failure& failure = *reinterpret_cast<Failure*>(jpeg->err);
  std::strcpy(failure.message, "the image has too many scans");
  std::longjmp(failure.jump, 1);
}

// Converts a row of a print image as Pillow does: [width, 4] of cyan, magenta, yellow and black, which JPEG
// files store inverted, to [width, 3].
void from_inks(const std::uint8_t* inks, std::uint8_t* pixels, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i, inks += 4) {
    const unsigned light = inks[3];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned product = (255U - inks[c]) * light + 128;
      *pixels++ = static_cast<std::uint8_t>(light - (((product >> 8) + product) >> 8));
    }
  }
}

// libjpeg reports errors with longjmp, so functions that call libjpeg must have no objects with
// destructors.
class Reader {
 public:
  Reader() {
    jpeg_.err = jpeg_std_error(&failure_.base);
    failure_.base.error_exit = fail;
    failure_.base.emit_message = fail_at_end;
    progress_.progress_monitor = count_scans;
  }
  ~Reader() {
    if (created_) jpeg_destroy_decompress(&jpeg_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const char* message() const { return failure_.message; }
  std::int64_t width() const { return jpeg_.image_width; }
  std::int64_t height() const { return jpeg_.image_height; }
  bool is_colour() const { return jpeg_.jpeg_color_space == JCS_YCbCr || jpeg_.jpeg_color_space == JCS_RGB; }
  bool is_grey() const { return jpeg_.jpeg_color_space == JCS_GRAYSCALE; }
  bool is_print() const { return jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK; }

  bool read_header(std::span<const std::byte> file) {
    if (setjmp(failure_.jump) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    created_ = true;
    jpeg_.progress = &progress_;
    jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xFFFF);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  // Returns the metadata from the segments before the image data. Several EXIF segments are parts of one
  // EXIF file.
  Metadata metadata() const {
    constexpr std::string_view kExif{"Exif\0\0", 6}, kXmp{"http://ns.adobe.com/xap/1.0/\0", 29};
    Metadata found;
    for (const jpeg_marker_struct* marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (data.starts_with(kExif)) found.exif += data.substr(kExif.size());
      if (data.starts_with(kXmp)) found.xmp = data.substr(kXmp.size());
    }
    return found;
  }

  // inks: for print images, memory for a row [width, 4].
  bool read_rows(std::uint8_t* pixels, std::uint8_t* inks) {
    if (setjmp(failure_.jump) != 0) return false;
    jpeg_.out_color_space = is_print() ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      std::uint8_t* const out = pixels + std::size_t{3} * jpeg_.output_scanline * jpeg_.output_width;
      JSAMPROW row = is_print() ? inks : out;
      jpeg_read_scanlines(&jpeg_, &row, 1);
      if (is_print()) from_inks(inks, out, jpeg_.output_width);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

 private:
  Failure failure_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  bool created_ = false;
};

}  // namespace

Result<Image> decode_jpeg(std::span<const std::byte> file, std::int64_t pixels_max) {
  Reader reader;
  const auto broken = [&] { return invalid("", "the JPEG image is damaged: {}", reader.message()); };
  if (!reader.read_header(file)) return broken();
  TRY_VOID(check_size(reader.width(), reader.height(), pixels_max));
  if (!reader.is_colour() && !reader.is_grey() && !reader.is_print())
    return invalid("", "the colours of the JPEG image must be grey, RGB or CMYK");
  Image image{static_cast<int>(reader.width()), static_cast<int>(reader.height()), {}};
  image.pixels.resize(static_cast<std::size_t>(reader.width() * reader.height() * 3));
  const int orientation = orientation_of(reader.metadata());
  std::vector<std::uint8_t> inks(reader.is_print() ? static_cast<std::size_t>(reader.width()) * 4 : 0);
  if (!reader.read_rows(image.pixels.data(), inks.data())) return broken();
  return upright(std::move(image), orientation);
}

}  // namespace octavo::media
