#include "grammar/text_position.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/unicode.h"

namespace octavo::grammar {

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_end = before.rfind('\n');
  const std::string_view line = before.substr(line_end == std::string_view::npos ? 0 : line_end + 1);
  const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
  return fmt::format("line {}, column {}", 1 + std::ranges::count(before, '\n'), 1 + characters);
}

std::string found_at(std::string_view text, std::size_t offset) {
  if (offset >= text.size()) return "the end of the text";
  if (text.substr(offset).starts_with("\xEF\xBB\xBF")) return "a byte order mark (U+FEFF); remove it";
  if (text[offset] == '\n' || text[offset] == '\r') return "the end of the line";
  std::size_t end = offset;
  next_code_point(text, end);
  return fmt::format("'{}'", text.substr(offset, end - offset));
}

}  // namespace octavo::grammar
