#include "fleet/view/route_request.h"

#include <cstring>

namespace octavo::fleet {

std::vector<std::uint32_t> estimated_tokens(std::string_view text) {
  std::vector<std::uint32_t> tokens((text.size() + 3) / 4, 0);
  if (!text.empty()) std::memcpy(tokens.data(), text.data(), text.size());
  return tokens;
}

void estimate_media(RouteRequest& request, const MediaTokens& tokens) {
  if (request.tokens_are_exact || request.media_positions.empty()) return;
  // Maximum number of estimated tokens of all media together. A body may contain any number of media.
  constexpr std::size_t kTokensMax = 1 << 20;
  const std::string_view text = request.text;
  std::vector<std::uint32_t> all;
  std::size_t from = 0, left = kTokensMax;
  for (std::size_t i = 0; i < request.media_positions.size(); ++i) {
    const RouteRequest::MediaPosition& media = request.media_positions[i];
    const auto before = estimated_tokens(text.substr(from, media.at - from));
    all.insert(all.end(), before.begin(), before.end());
    from = media.at;
    const auto count = static_cast<std::size_t>(media.image ? tokens.image : media.video ? tokens.video : 0);
    all.insert(all.end(), std::min(count, left), static_cast<std::uint32_t>(request.media[i]));
    left -= std::min(count, left);
  }
  const auto after = estimated_tokens(text.substr(from));
  all.insert(all.end(), after.begin(), after.end());
  request.tokens = std::move(all);
}

}  // namespace octavo::fleet
