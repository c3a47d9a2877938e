#include "grammar/notation.h"

#include <algorithm>
#include <charconv>

#include "grammar/limits.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

Result<void> NotationReader::readable() const {
  if (text_.size() > kNotationBytesMax)
    return invalid(field_, "{}: {} bytes, the limit is {}", notation_, text_.size(), kNotationBytesMax);
  if (const auto bad = invalid_utf8(text_))
    return invalid(field_, "{}: invalid UTF-8 at offset {}", notation_, *bad);
  return {};
}

std::unexpected<Error> NotationReader::fail_at(std::size_t offset, const std::string& message) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = 1 + std::ranges::count(before, '\n');
  const auto start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return invalid(field_, "{}: {} at line {}, column {}", notation_, message, line, column);
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
      return error("an escape without {} hexadecimal digits", digits);
    if (value > kCodePointMax || (value >= 0xD800 && value < 0xE000))
      return error("an escape that is no code point");
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
  return error("an unknown escape");
}

Result<std::uint32_t> NotationReader::character() {
  if (take("\\")) return escape();
  const auto c = next_code_point(text_, at_);
  if (!c) return error("the text ends inside a literal or class");
  return *c;
}

Result<std::string> NotationReader::quoted(char quote) {
  std::string bytes;
  while (!take(std::string_view(&quote, 1))) {
    if (done() || peek() == '\n') return error("a literal without end");
    TRY(const std::uint32_t c, character());
    append_utf8(bytes, c);
  }
  return bytes;
}

Result<ExprId> NotationReader::special_token() {
  const std::size_t end = text_.find_first_of(">\n", at_);
  if (end == std::string_view::npos || text_[end] == '\n' || end == at_) return error("a token without '>'");
  const std::string_view inner = text_.substr(at_, end - at_);
  TokenAtom atom;
  if (inner.starts_with('[') && inner.ends_with(']')) {
    const std::string_view digits = inner.substr(1, inner.size() - 2);
    const auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), atom.id);
    if (problem != std::errc() || stop != digits.data() + digits.size() || atom.id < 0)
      return error("a malformed token number");
  } else {
    atom.text = fmt::format("<{}>", inner);
  }
  at_ = end + 1;
  return g_.token(std::move(atom));
}

Result<ExprId> NotationReader::repeated(ExprId part, std::optional<std::uint32_t> min,
                                        std::optional<std::uint32_t> max) {
  const std::uint32_t low = min.value_or(0), high = max.value_or(kUnbounded);
  if (low > kRepeatMax || (max && high > kRepeatMax)) return error("a repetition beyond {}", kRepeatMax);
  if (low > high) return error("a repetition of at least {} and at most {}", low, high);
  return g_.repeat(part, low, high);
}

}  // namespace octavo::grammar
