#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "media/resize.h"
#include "media/video.h"
#include "media/video_file.h"
#include "serve/read_media.h"

namespace octavo {
namespace {

constexpr std::string_view kFrames = "data:video/jpeg;base64,";

// Builds MediaParts from frames as they arrive.
class VideoParts {
 public:
  VideoParts(const Service& service, const media::ProcessorConfig& config, std::int64_t tokens_max)
      : service_(service), config_(config), rule_(*config.video), tokens_max_(tokens_max) {}

  Result<> begin(const media::VideoHead& head, std::vector<int> frames) {
    head_ = head;
    frames_ = std::move(frames);
    TRY(grid_, media::video_grid(static_cast<int>(frames_.size()), head.width, head.height, rule_));
    const int unit = rule_.size.unit;
    tokens_ = std::int64_t{grid_.width / unit} * (grid_.height / unit);
    const std::int64_t all = tokens_ * media::video_parts(static_cast<int>(frames_.size()), rule_);
    if (all > tokens_max_) return std::unexpected(no_room("video", all, service_));
    return {};
  }

  void add(const media::Image& frame) {
    if (parts_.empty() || parts_.back().frames == rule_.frames)
      parts_.push_back({.tokens = static_cast<int>(tokens_),
                        .bytes = {},
                        .columns = grid_.width / rule_.size.unit,
                        .time = 0,
                        .continues = !rule_.stamped && !parts_.empty()});
    const media::Image resized = media::resize_as_torch(frame, grid_.width, grid_.height, config_.filter);
    parts_.back().bytes.append(resized.pixels.begin(), resized.pixels.end());
    ++parts_.back().frames;
  }

  ReadMedia take() {
    ReadMedia read{{}, std::move(parts_)};
    for (MediaPart& part : read.parts) part.digest = digest_of(part);
    if (rule_.stamped)
      stamp(read);
    else
      set_times(read);
    return read;
  }

 private:
  std::string tokens() const {
    std::string text;
    for (std::int64_t i = 0; i < tokens_; ++i) text += rule_.token;
    return text;
  }

  // Writes Qwen3-VL's format: the time of each part, then the part like an image.
  void stamp(ReadMedia& read) const {
    for (const double seconds : media::part_seconds(frames_, head_.fps, rule_))
      read.text += fmt::format("<{:.1f} seconds>{}{}{}", seconds, rule_.before, tokens(), rule_.after);
  }

  // Sets the time position of each part. Computed with 32-bit floats, as in transformers.
  void set_times(ReadMedia& read) const {
    const double fps = static_cast<double>(frames_.size()) / head_.frames * head_.fps;
    const float steps = service_.engine_info.image.time_steps,
                step = steps > 0 ? static_cast<float>(static_cast<double>(steps) * (rule_.frames / fps)) : 1.0F;
    for (std::size_t i = 0; i < read.parts.size(); ++i) {
      read.parts[i].time = static_cast<int>(static_cast<float>(i) * step);
      read.text += tokens();
    }
  }

  const Service& service_;
  const media::ProcessorConfig& config_;
  const media::VideoRule& rule_;
  const std::int64_t tokens_max_;
  media::VideoHead head_;
  std::vector<int> frames_;
  media::PartGrid grid_;
  std::int64_t tokens_ = 0;  // number of tokens of each part
  std::vector<MediaPart> parts_;
};

// Makes parts from all frames of the list. As in vLLM, frames are not sampled.
Result<> read_frames(std::string_view list, const media::VideoRule& rule, VideoParts& parts) {
  const auto count = std::ranges::count(list, ',') + 1;
  if (count > rule.frames_max)
    return invalid("", "the video has {} frames, but at most {} are allowed", count, rule.frames_max);
  media::VideoHead head{.frames = static_cast<int>(count), .fps = rule.loader_fps > 0 ? rule.loader_fps : 1};
  for (int i = 0; i < head.frames; ++i) {
    const std::size_t comma = std::min(list.find(','), list.size());
    TRY(const std::string file, decode_base64(list.substr(0, comma)));
    auto frame = media::decode_image(std::as_bytes(std::span(file)), media::kFramePixelsMax);
    if (!frame) return invalid("", "frame {}: {}", i, frame.error().message);
    if (i == 0) {
      head.width = frame->width;
      head.height = frame->height;
      std::vector<int> all(static_cast<std::size_t>(count));
      for (int k = 0; k < head.frames; ++k) all[static_cast<std::size_t>(k)] = k;
      TRY_VOID(parts.begin(head, std::move(all)));
    }
    if (frame->width != head.width || frame->height != head.height)
      return invalid(
          "",
          "frame {} has {} x {} pixels, but the first frame has {} x {}: all frames must have the same size",
          i, frame->width, frame->height, head.width, head.height);
    parts.add(*frame);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return {};
}

}  // namespace

Result<ReadMedia> read_video(const Service& service, const media::ProcessorConfig& config,
                             const openai::ChatPrompt::Media& given, std::int64_t tokens_max) {
  VideoParts parts(service, config, tokens_max);
  if (const std::string_view url = given.url; !given.bytes && url.starts_with(kFrames)) {
    TRY_VOID(read_frames(url.substr(kFrames.size()), *config.video, parts));
    return parts.take();
  }
  TRY(const std::string file, bytes_of(given));
  const auto choose = [&](const media::VideoHead& head) -> Result<std::vector<int>> {
    TRY(std::vector<int> frames, media::chosen_frames(head, *config.video));
    TRY_VOID(parts.begin(head, frames));
    return frames;
  };
  TRY_VOID(media::decode_video(std::as_bytes(std::span(file)), choose, [&](const media::Image& frame) { parts.add(frame); }));
  return parts.take();
}

}  // namespace octavo
