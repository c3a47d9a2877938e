#include "serve/media_io.h"

#include <algorithm>
#include <cstdint>

#include "openai/request_fields.h"

namespace octavo {
namespace {

using openai::Fields;

constexpr int kFramesMax = 1 << 12;
constexpr int kSourceFramesMax = 1 << 30;  // of the video from which a client has taken the frames

Result<> read_frames(Fields& f, MediaIo& out) {
  TRY_VOID(f.integer("num_frames", out.frames, -1, kFramesMax));
  if (out.frames == -1) out.frames = 0;
  double fps = 0;
  TRY_VOID(f.number("fps", fps));
  if (fps < 0 || fps > 1000) return invalid(f.full_name("fps"), "must be from 0 to 1000, got {}", fps);
  if (fps > 0) out.fps = fps;
  TRY_VOID(f.integers("frames_indices", out.list.indices));
  return f.integer("total_num_frames", out.list.source_frames, 1, kSourceFramesMax);
}

Result<> read_background(Fields& f, MediaIo& out) {
  std::vector<std::int32_t> colour;
  TRY_VOID(f.integers("rgba_background_color", colour));
  if (colour.empty()) return {};
  const bool fits = std::ranges::all_of(colour, [](int value) { return value >= 0 && value <= 255; });
  media::Colour background;
  if (!fits || colour.size() != background.size())
    return invalid(f.full_name("rgba_background_color"), "must be a list of 3 integers from 0 to 255");
  std::ranges::copy(colour, background.begin());
  out.background = background;
  return {};
}

// All images are converted to RGB.
Result<> read_image(Fields& f, MediaIo& out) {
  std::string mode = "RGB";
  TRY_VOID(f.text("image_mode", mode));
  if (mode != "RGB") return invalid(f.full_name("image_mode"), "must be RGB, got {}", mode.substr(0, 32));
  return read_background(f, out);
}

}  // namespace

Result<> read_media_io(const boost::json::object& kwargs, const std::string& path, MediaIo& out,
                       std::vector<std::string>& ignored) {
  Fields kinds(kwargs, path);
  for (const std::string_view kind : {"image", "audio", "video"}) {
    TRY(const boost::json::object* given, kinds.object(kind));
    if (given == nullptr) continue;
    Fields f(*given, kinds.full_name(kind) + ".");
    if (kind == "video") TRY_VOID(read_frames(f, out));
    if (kind == "image") TRY_VOID(read_image(f, out));
    std::ranges::copy(f.unread(), std::back_inserter(ignored));
  }
  std::ranges::copy(kinds.unread(), std::back_inserter(ignored));
  return {};
}

Result<> read_media_io_flag(const boost::json::object& kwargs, MediaIo& out) {
  std::vector<std::string> ignored;
  TRY_VOID(read_media_io(kwargs, "", out, ignored));
  for (const std::string& name : ignored)
    return invalid(name,
                   "is not supported: the options are video.num_frames, video.fps and "
                   "image.rgba_background_color");
  if (!out.list.indices.empty() || out.list.source_frames > 0)
    return invalid("video", "frames_indices and total_num_frames belong to one video: set them in a request");
  return {};
}

void apply(const MediaIo& given, media::ProcessorConfig& config) {
  if (given.background) config.background = *given.background;
  if (!config.video) return;
  media::VideoRule& rule = *config.video;
  rule.list.indices = given.list.indices;
  rule.list.source_frames = given.list.source_frames;
  if (!given.frames && !given.fps) return;
  rule.samples = false;
  rule.loader_frames = rule.list.frames = given.frames.value_or(0);
  rule.loader_fps = given.fps.value_or(0);
}

}  // namespace octavo
