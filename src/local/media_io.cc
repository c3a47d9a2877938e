#include "local/media_io.h"

#include "openai/request_fields.h"

namespace octavo {

Result<> read_media_io(const boost::json::object& kwargs, VideoFrames& frames) {
  constexpr int kFramesMax = 1 << 12;
  openai::Fields kinds(kwargs);
  for (const char* kind : {"image", "audio", "video"}) {
    TRY(const boost::json::object* given, kinds.object(kind));
    if (given == nullptr) continue;
    openai::Fields f(*given, std::string(kind) + ".");
    if (std::string_view(kind) == "video") {
      TRY_VOID(f.integer("num_frames", frames.number, -1, kFramesMax));
      if (frames.number == -1) frames.number = 0;
      double fps = 0;
      TRY_VOID(f.number("fps", fps));
      if (fps > 1000) return invalid(f.full_name("fps"), "must be at most 1000, got {}", fps);
      if (fps > 0) frames.fps = fps;
    }
    for (const std::string& name : f.unread()) return invalid(name, "is not supported");
  }
  for (const std::string& name : kinds.unread())
    return invalid(name, "is not a type of media: must be image, audio or video");
  return {};
}

}  // namespace octavo
