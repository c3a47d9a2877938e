#include "openai/request_id.h"

#include <algorithm>
#include <string_view>

namespace octavo::openai {

std::string request_id_of(const http::Headers& headers) {
  constexpr std::size_t kBytesMax = 256;
  const std::string_view id = headers.find("X-Request-Id").value_or("").substr(0, kBytesMax);
  const bool plain = std::ranges::all_of(id, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
  return plain ? std::string(id) : std::string();
}

}  // namespace octavo::openai
