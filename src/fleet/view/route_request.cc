#include "fleet/view/route_request.h"

#include <cstring>

namespace octavo::fleet {

std::vector<std::uint32_t> estimated_tokens(std::string_view text) {
  std::vector<std::uint32_t> tokens((text.size() + 3) / 4, 0);
  if (!text.empty()) std::memcpy(tokens.data(), text.data(), text.size());
  return tokens;
}

}  // namespace octavo::fleet
