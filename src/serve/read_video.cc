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

// The positions of a list's images in the video from which the client has taken them.
struct SourceFrames {
  int frames = 0;
  std::vector<int> indices;
};

// Returns an error if the options of the request do not fit a list of `count` images.
Result<SourceFrames> source_frames(const media::FrameList& list, int count) {
  SourceFrames source{.frames = list.source_frames > 0 ? list.source_frames : count, .indices = list.indices};
  if (source.frames < count)
    return invalid(
        "",
        "media_io_kwargs.video.total_num_frames is {}, but the list has {} images: it must be at least "
        "the number of images",
        source.frames, count);
  if (source.indices.empty())
    for (int i = 0; i < count; ++i) source.indices.push_back(i);
  if (std::ssize(source.indices) != count)
    return invalid(
        "",
        "media_io_kwargs.video.frames_indices has {} indices, but the list has {} images: both must be "
        "equal",
        source.indices.size(), count);
  if (source.indices.front() < 0 || !std::ranges::is_sorted(source.indices))
    return invalid("", "media_io_kwargs.video.frames_indices must be ascending and not negative");
  return source;
}

// Makes parts from the first images of the list, or from all. As in vLLM, frames are not sampled.
Result<> read_frames(std::string_view list, const media::VideoRule& rule, VideoParts& parts) {
  auto count = std::ranges::count(list, ',') + 1;
  if (rule.list.frames > 0) count = std::min<std::ptrdiff_t>(count, rule.list.frames);
  if (count > rule.frames_max)
    return invalid("", "the video has {} frames, but at most {} are allowed", count, rule.frames_max);
  TRY(const SourceFrames source, source_frames(rule.list, static_cast<int>(count)));
  media::VideoHead head{.frames = source.frames, .fps = rule.loader_fps > 0 ? rule.loader_fps : 1};
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const std::size_t comma = std::min(list.find(','), list.size());
    TRY(const std::string file, decode_base64(list.substr(0, comma)));
    auto frame = media::decode_image(std::as_bytes(std::span(file)), media::kFramePixelsMax);
    if (!frame) return invalid("", "frame {}: {}", i, frame.error().message);
    if (i == 0) {
      head.width = frame->width;
      head.height = frame->height;
      TRY_VOID(parts.begin(head, source.indices));
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
