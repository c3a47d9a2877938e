// Images, videos and sounds of a chat: their kinds, and how many a prompt may have.
#include <fmt/format.h>

#include "serve/openai/chat_request.h"

namespace octavo::openai {

MediaKind media_kind(std::string_view type) {
  return type == "video" ? MediaKind::video : type == "audio" ? MediaKind::sound : MediaKind::image;
}

Result<> check_media(const std::string& name, const RequestRules& rules, std::ptrdiff_t before,
                     MediaKind kind) {
  struct Kind {
    std::string_view taken, counted;
    int most;
  };
  const Kind kinds[] = {{"images", "image(s)", rules.images_max},
                        {"videos", "video(s)", rules.videos_max},
                        {"sound", "audio(s)", rules.sounds_max}};
  const auto& [wanted, counted, most] = kinds[static_cast<std::size_t>(kind)];
  if (most == 0) {
    std::string takes;
    for (const Kind& one : kinds)
      if (one.most > 0) takes += fmt::format("{}{}", takes.empty() ? "takes " : " and ", one.taken);
    return invalid(name, "{} {}", rules.model_names.empty() ? "this" : rules.model_names[0],
                   takes.empty() ? "is not a multimodal model: send text only, or use another model"
                                 : fmt::format("{} and no {}", takes, wanted));
  }
  if (before >= most) return invalid(name, "At most {} {} may be provided in one prompt", most, counted);
  return {};
}

}  // namespace octavo::openai
