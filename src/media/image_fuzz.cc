// Fuzzes the decoder: any bytes give an image or an error.
#include "base/check.h"
#include "media/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  constexpr std::int64_t kMost = 1 << 18;
  const auto image = media::decode_image(std::as_bytes(std::span(data, size)), kMost);
  if (image) {
    CHECK(std::int64_t{image->width} * image->height <= kMost, "{} x {}", image->width, image->height);
    CHECK(std::ssize(image->pixels) == std::int64_t{3} * image->width * image->height);
  } else {
    CHECK(image.error().code == ErrorCode::invalid_argument, "{}", image.error().message);
  }
  return 0;
}
