#include "grammar/notation.h"

#include <algorithm>
#include <charconv>

#include "grammar/limits.h"
#include "grammar/text_position.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

Result<void> NotationReader::readable() const {
  if (text_.size() > kNotationBytesMax)
    return invalid(field_, "{}: the grammar has {} bytes, the limit is {}; shorten it", notation_,
                   text_.size(), kNotationBytesMax);
  if (const auto bad = invalid_utf8(text_))
    return invalid(field_, "{}, {}: invalid UTF-8; send the grammar as UTF-8", notation_,
                   line_and_column(text_, *bad));
  return {};
}

std::unexpected<Error> NotationReader::fail_at(std::size_t offset, const std::string& message) const {
  return invalid(field_, "{}, {}: {}", notation_, line_and_column(text_, offset), message);
}

std::unexpected<Error> NotationReader::expected_at(std::size_t offset, std::string_view expected) const {
  return error_at(offset, "expected {}, found {}", expected, found_at(text_, offset));
}

std::unexpected<Error> NotationReader::nothing_to_repeat() const {
  return error("the quantifier '{0}' has nothing before it to repeat; to match the character, write \"{0}\"",
               peek());
}

std::unexpected<Error> NotationReader::second_quantifier() const {
  return error("a second quantifier '{}'; enclose the expression and its first quantifier in parentheses",
               peek());
}

std::optional<std::uint32_t> NotationReader::number() {
  const std::size_t start = at_;
  std::uint64_t value = 0;
  for (; peek() >= '0' && peek() <= '9'; ++at_)
    value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(peek() - '0'), kUnbounded);
  return at_ > start ? std::optional(static_cast<std::uint32_t>(value)) : std::nullopt;
}

Result<std::uint32_t> NotationReader::escape() {
  const char c = peek();
  ++at_;
  const auto hex = [&](std::size_t digits) -> Result<std::uint32_t> {
    std::uint32_t value = 0;
    const char* first = text_.data() + at_;
    if (at_ + digits > text_.size() ||
        std::from_chars(first, first + digits, value, 16).ptr != first + digits)
      return error("the escape \\{} needs {} hexadecimal digits", c, digits);
    if (value > kCodePointMax || (value >= 0xD800 && value < 0xE000))
      return error("U+{:04X} is not a character; write a code point up to U+10FFFF outside U+D800 to U+DFFF",
                   value);
    at_ += digits;
    return value;
  };
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'f':
      return '\f';
    case 'x':
      return hex(2);
    case 'u':
      return hex(4);
    case 'U':
      return hex(8);
    default:
      break;
  }
  if (std::string_view("\"'\\[]^-/.").contains(c) && c != '\0') return static_cast<std::uint32_t>(c);
  --at_;
  return error(
      "unknown escape \\ before {}; known are \\n \\r \\t \\f \\xHH \\uHHHH \\UHHHHHHHH, and \\ before one "
      "of \" ' \\ [ ] ^ - / .",
      found_at(text_, at_));
}

Result<std::uint32_t> NotationReader::character() {
  if (take("\\")) return escape();
  const auto c = next_code_point(text_, at_);
  if (!c) return expected("another character or the end of the literal or class");
  return *c;
}

Result<std::string> NotationReader::quoted(char quote) {
  const std::size_t opening = at_ - 1;
  std::string bytes;
  while (!take(std::string_view(&quote, 1))) {
    if (done() || peek() == '\n')
      return error_at(opening, "the literal has no closing {} on its line; write a line break as \\n", quote);
    TRY(const std::uint32_t c, character());
    append_utf8(bytes, c);
  }
  return bytes;
}

Result<ExprId> NotationReader::special_token() {
  const std::size_t end = text_.find_first_of(">\n", at_);
  if (end == std::string_view::npos || text_[end] == '\n' || end == at_)
    return error("a special token needs a name and '>' on the same line: <name> or <[number]>");
  const std::string_view inner = text_.substr(at_, end - at_);
  TokenAtom atom;
  if (inner.starts_with('[') && inner.ends_with(']')) {
    const std::string_view digits = inner.substr(1, inner.size() - 2);
    const auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), atom.id);
    if (problem != std::errc() || stop != digits.data() + digits.size() || atom.id < 0)
      return error("'{}' is not a token number; write <[42]> or <name>", inner);
  } else {
    atom.text = fmt::format("<{}>", inner);
  }
  at_ = end + 1;
  return g_.token(std::move(atom));
}

Result<ExprId> NotationReader::repeated(ExprId part, std::optional<std::uint32_t> min,
                                        std::optional<std::uint32_t> max) {
  const std::uint32_t low = min.value_or(0), high = max.value_or(kUnbounded);
  if (low > kRepeatMax || (max && high > kRepeatMax))
    return error("a repetition count exceeds the limit of {}; lower it", kRepeatMax);
  if (low > high)
    return error("the minimum {} of the repetition exceeds its maximum {}; swap them", low, high);
  return g_.repeat(part, low, high);
}

}  // namespace octavo::grammar
