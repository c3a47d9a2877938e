#include "media/video_file.h"

#include <utility>

#include "base/plugin.h"

namespace octavo::media {
namespace {

Result<std::vector<int>> checked(const VideoHead& head, Result<std::vector<int>> frames) {
  if (!frames || frames->empty()) return frames;
  const std::int64_t each = std::int64_t{head.width} * head.height, decoded = frames->back() + std::int64_t{1};
  if (decoded > kVideoPixelsMax / each)
    return invalid("", "the video needs {} frames of {} x {} pixels, but at most {} pixels may be decoded",
                   decoded, head.width, head.height, kVideoPixelsMax);
  return frames;
}

class Sink final : public VideoSink {
 public:
  Sink(const std::function<Result<std::vector<int>>(const VideoHead&)>& choose, const std::function<void(Image)>& take)
      : choose_(choose), take_(take) {}

  std::vector<int> begin(const VideoHead& head) override {
    chosen_ = checked(head, choose_(head));
    return chosen_ ? *chosen_ : std::vector<int>();
  }
  void frame(Image image) override { take_(std::move(image)); }

  const Result<std::vector<int>>& chosen() const { return chosen_; }

 private:
  const std::function<Result<std::vector<int>>(const VideoHead&)>& choose_;
  const std::function<void(Image)>& take_;
  Result<std::vector<int>> chosen_;
};

}  // namespace

Result<> decode_video(std::span<const std::byte> file,
                      const std::function<Result<std::vector<int>>(const VideoHead&)>& choose,
                      const std::function<void(Image)>& take) {
  static const Result<void*> function = plugin_function("liboctavo_video.so", kReadVideo);
  if (!function)
    return failure(ErrorCode::unsupported,
                   "video files need FFmpeg's libraries, which are missing: install them, or send frames as "
                   "data:video/jpeg;base64,..,..: {}",
                   function.error().message);
  Sink sink(choose, take);
  char why[256] = {};
  const bool read = reinterpret_cast<ReadVideo>(*function)(file, sink, why, sizeof why);
  if (!sink.chosen()) return std::unexpected(sink.chosen().error());
  if (!read) return invalid("", "{}", why);
  return {};
}

}  // namespace octavo::media
