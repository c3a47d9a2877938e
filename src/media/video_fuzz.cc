// Fuzzes the decoder: any bytes give a video or an error. Needs FFmpeg's libraries.
#include "base/check.h"
#include "media/video_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  constexpr std::int64_t kMost = 1 << 18;
  const media::VideoRule rule{.size = {}, .loader_frames = 4};
  media::VideoHead seen;
  std::size_t frames = 0;
  const auto choose = [&](const media::VideoHead& head) -> Result<std::vector<int>> {
    CHECK(head.frames > 0 && head.fps > 0 && head.width > 0 && head.height > 0);
    if (std::int64_t{head.width} * head.height > kMost) return invalid("", "too large");
    seen = head;
    return media::chosen_frames(head, rule);
  };
  const auto take = [&](const media::Image& image) {
    ++frames;
    CHECK(image.width == seen.width && image.height == seen.height);
    CHECK(std::ssize(image.pixels) == std::int64_t{3} * image.width * image.height);
  };
  const auto read = media::decode_video(std::as_bytes(std::span(data, size)), choose, take);
  if (read)
    CHECK(frames == media::chosen_frames(seen, rule)->size());
  else
    CHECK(read.error().code == ErrorCode::invalid_argument, "{}", read.error().message);
  return 0;
}
