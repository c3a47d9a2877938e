#include "base/quoted_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace octavo {
namespace {

// Returns the size of the first UTF-8 character, or 0 if it is invalid or incomplete.
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first >= 0x20 && first < 0x7f) return 1;
  const std::size_t bytes = first >= 0xc2 && first < 0xe0   ? 2
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xf0 && first < 0xf5 ? 4
                                                            : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  return std::ranges::all_of(text.substr(1, bytes - 1), continues) ? bytes : 0;
}

}  // namespace

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (text.front() == '"' || text.front() == '\\') out += '\\';
    if (bytes == 0)
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text.front()));
    else
      out += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out += '"';
}

}  // namespace octavo
