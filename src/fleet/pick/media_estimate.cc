#include "fleet/pick/media_estimate.h"

#include <algorithm>
#include <cmath>

#include "fleet/decide/parameters.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kMost = 1 << 20;

// Estimates the tokens of an image or a video frame: "dynamic" by size, or "static" as a fixed number.
struct Tokens {
  std::string mode = "dynamic";
  std::int64_t width = 640, height = 360, factor = 1024, fixed = 0;

  void read(Parameters& fields, std::string_view fixed_name) {
    fields.read("mode", mode);
    if (mode != "dynamic" && mode != "static") fields.fail("mode", "must be \"dynamic\" or \"static\"");
    fields.read_object("dynamic", [this](Parameters& dynamic) { dynamic.read("factor", factor, 1, kMost); });
    fields.read_object("static", [&](Parameters& given) { given.read(fixed_name, fixed, 0, kMost); });
  }
  void read_resolution(Parameters& fields) {
    fields.read_object("defaultResolution", [this](Parameters& size) {
      size.read("width", width, 1, kMost);
      size.read("height", height, 1, kMost);
    });
  }
  std::int64_t count() const {
    return mode == "static" ? fixed : std::max<std::int64_t>(1, width * height / factor);
  }
};

struct Frames {
  std::string mode = "sampled";
  std::int64_t least = 0, most = 0, merged = 1, stride = 1;
  double sampled_fps = 1, source_fps = 24;

  void read(Parameters& fields) {
    fields.read("mode", mode);
    if (mode != "sampled" && mode != "strided") fields.fail("mode", "must be \"sampled\" or \"strided\"");
    fields.read("minFrames", least, 0, kMost);
    fields.read("maxFrames", most, 0, kMost);
    fields.read_object("sampled", [this](Parameters& sampled) {
      sampled.read("sampleFPS", sampled_fps, 0, 1000);
      sampled.read("temporalPatchSize", merged, 0, kMost);
    });
    fields.read_object("strided", [this](Parameters& strided) {
      strided.read("defaultSourceFPS", source_fps, 0, 1000);
      strided.read("frameStride", stride, 1, kMost);
    });
  }
  std::int64_t count(double seconds) const {
    const bool strided = mode == "strided";
    const double frames = seconds * (strided ? source_fps / static_cast<double>(stride) : sampled_fps);
    auto whole = std::max(static_cast<std::int64_t>(std::min(frames, 1e6)), least);
    if (most > 0) whole = std::min(whole, most);
    return std::max<std::int64_t>(1, strided || merged < 2 ? whole : whole / merged);
  }
};

}  // namespace

void read_media_estimate(Parameters& estimate, MediaTokens& tokens) {
  estimate.read_object("image", [&](Parameters& fields) {
    Tokens image;
    image.read(fields, "staticToken");
    image.read_resolution(fields);
    tokens.image = image.count();
  });
  estimate.read_object("video", [&](Parameters& fields) {
    Tokens frame;
    Frames frames;
    double seconds = 10;
    std::int64_t most = 0;
    fields.read_object("tokensPerFrame", [&](Parameters& given) { frame.read(given, "numTokensPerFrame"); });
    fields.read_object("frames", [&](Parameters& given) { frames.read(given); });
    frame.read_resolution(fields);
    fields.read("defaultDuration", seconds, 0, 1e6);
    fields.read("maxVideoTokens", most, 0, kMost);
    tokens.video = std::min(frames.count(seconds) * frame.count(), most > 0 ? most : kMost);
  });
}

}  // namespace octavo::fleet
