#include "text/byte_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace octavo {

std::string written(std::string_view bytes) {
  static const std::array<std::string, 256> signs = [] {
    std::array<std::string, 256> made;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      const unsigned sign = visible ? byte : next++;
      made[byte] = sign < 0x80 ? std::string(1, static_cast<char>(sign))
                               : std::string{static_cast<char>(0xc0 | (sign >> 6)),
                                             static_cast<char>(0x80 | (sign & 0x3f))};
    }
    return made;
  }();
  std::string text;
  for (const char byte : bytes) text += signs[static_cast<unsigned char>(byte)];
  return text;
}

std::vector<std::string> merges_of(std::span<const std::string> tokens) {
  std::unordered_map<std::string_view, std::size_t> ranks;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) ranks.emplace(tokens[rank], rank);
  std::vector<std::string> merges;
  std::vector<std::pair<std::size_t, std::size_t>> ways;
  for (const std::string_view token : tokens) {
    ways.clear();
    for (std::size_t at = 1; at < token.size(); ++at) {
      const auto left = ranks.find(token.substr(0, at)), right = ranks.find(token.substr(at));
      if (left != ranks.end() && right != ranks.end()) ways.emplace_back(left->second, right->second);
    }
    std::ranges::sort(ways);
    for (const auto& [left, right] : ways)
      merges.push_back(fmt::format("{} {}", written(tokens[left]), written(tokens[right])));
  }
  return merges;
}

}  // namespace octavo
