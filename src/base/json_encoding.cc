#include "base/json_encoding.h"

#include <cstdint>

namespace octavo {
namespace {

using namespace std::string_view_literals;

struct JsonEncoding {
  std::size_t unit = 1;  // bytes of a code unit: 1, 2 or 4
  bool big = false;
  std::size_t mark = 0;  // bytes of the byte order mark
};

JsonEncoding encoding_of(std::string_view text) {
  // UTF-32 first, because its little-endian mark begins with that of UTF-16.
  if (text.starts_with("\0\0\xFE\xFF"sv)) return {.unit = 4, .big = true, .mark = 4};
  if (text.starts_with("\xFF\xFE\0\0"sv)) return {.unit = 4, .mark = 4};
  if (text.starts_with("\xFE\xFF"sv)) return {.unit = 2, .big = true, .mark = 2};
  if (text.starts_with("\xFF\xFE"sv)) return {.unit = 2, .mark = 2};
  if (text.starts_with("\xEF\xBB\xBF"sv)) return {.mark = 3};
  if (text.size() < 4) {
    if (text.size() != 2) return {};
    if (text[0] == 0) return {.unit = 2, .big = true};
    return {.unit = text[1] == 0 ? std::size_t{2} : 1};
  }
  if (text[0] == 0) return {.unit = text[1] == 0 ? std::size_t{4} : 2, .big = true};
  if (text[1] == 0) return {.unit = text[2] == 0 && text[3] == 0 ? std::size_t{4} : 2};
  return {};
}

constexpr std::uint32_t kHighSurrogate = 0xD800, kLowSurrogate = 0xDC00, kSurrogateEnd = 0xE000;
constexpr std::uint32_t kReplacement = 0xFFFD;

void append_utf8(std::uint32_t c, std::string& out) {
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](int shift) { add(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return add(c);
  if (c < 0x800) return add(0xC0 | c >> 6), tail(0);
  if (c < 0x10000) return add(0xE0 | c >> 12), tail(6), tail(0);
  add(0xF0 | c >> 18), tail(12), tail(6), tail(0);
}

// The size of the text must be a multiple of the unit.
class UnitReader {
 public:
  UnitReader(std::string_view text, JsonEncoding encoding) : text_(text), encoding_(encoding) {}

  bool done() const { return text_.empty(); }

  std::uint32_t next() {
    const std::uint32_t unit = peek();
    text_.remove_prefix(encoding_.unit);
    return unit;
  }

  // A surrogate without a partner becomes U+FFFD.
  std::uint32_t character() {
    const std::uint32_t unit = next();
    if (unit < kHighSurrogate || unit >= kSurrogateEnd) return unit;
    if (unit >= kLowSurrogate || done() || encoding_.unit == 4) return kReplacement;
    const std::uint32_t low = peek();
    if (low < kLowSurrogate || low >= kSurrogateEnd) return kReplacement;
    next();
    return 0x10000 + ((unit - kHighSurrogate) << 10) + (low - kLowSurrogate);
  }

 private:
  std::uint32_t peek() const {
    std::uint32_t unit = 0;
    for (std::size_t i = 0; i < encoding_.unit; ++i) {
      const std::size_t at = encoding_.big ? i : encoding_.unit - 1 - i;
      unit = unit << 8 | static_cast<unsigned char>(text_[at]);
    }
    return unit;
  }

  std::string_view text_;
  const JsonEncoding encoding_;
};

}  // namespace

Result<std::string_view> utf8_json(std::string_view text, std::string& converted) {
  constexpr std::uint32_t kCharacterMax = 0x10FFFF;
  const JsonEncoding encoding = encoding_of(text);
  text.remove_prefix(encoding.mark);
  if (encoding.unit == 1) return text;
  if (text.size() % encoding.unit != 0)
    return failure(ErrorCode::invalid_argument,
                   "the body is UTF-{} and has {} bytes, but the number must be a multiple of {}",
                   8 * encoding.unit, text.size() + encoding.mark, encoding.unit);
  converted.clear();
  converted.reserve(text.size());
  for (UnitReader reader(text, encoding); !reader.done();) {
    const std::uint32_t c = reader.character();
    if (c > kCharacterMax)
      return failure(ErrorCode::invalid_argument,
                     "the body is UTF-32 and contains U+{:X}, which is above U+10FFFF", c);
    append_utf8(c, converted);
  }
  return std::string_view(converted);
}

}  // namespace octavo
