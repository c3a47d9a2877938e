#include "serve/openai/python_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "grammar/json_value.h"
#include "grammar/unicode.h"

namespace octavo::openai {

namespace {

constexpr int kPythonDepthMax = 64;  // maximum depth of nested collections

bool is_quote(char c) { return c == '\'' || c == '"'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

// Reads a string, beginning with its opening quote. The caller has read a prefix such as r or b.
class StringReader {
 public:
  // argument: whether the string is the whole value of an argument of a call.
  StringReader(CallCursor& cursor, bool raw, bool nested_quotes, bool argument)
      : cursor_(cursor),
        text_(cursor.rest()),
        raw_(raw),
        nested_quotes_(nested_quotes),
        argument_(argument) {}

  bool read(std::string& out) {
    const char quote = text_.front();
    if (text_.size() < 3 && std::ranges::all_of(text_, [&](char c) { return c == quote; }))
      return cursor_.starve();
    const std::string mark(text_.starts_with(std::string(3, quote)) ? 3 : 1, quote);
    at_ = mark.size();
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with(mark)) {
        const std::optional<bool> end = ends_at(at_ + mark.size());
        if (!end) return cursor_.starve();
        if (*end) {
          cursor_.skip(at_ + mark.size());
          return true;
        }
      }
      if (text_[at_] != '\\') {
        out += text_[at_++];
      } else if (!escape(out)) {
        break;
      }
    }
    return cursor_.starve();
  }

 private:
  // Returns whether the quote before text_[begin] ends the string, or nullopt if this depends on later text.
  std::optional<bool> ends_at(std::size_t begin) const {
    if (!nested_quotes_) return true;
    const std::size_t next = next_of(begin);
    if (next == std::string_view::npos) return std::nullopt;
    if (!std::string_view(argument_ ? ",)" : ",)]}:").contains(text_[next])) return false;
    return argument_ ? argument_ends_at(next) : true;
  }

  // text_[begin]: the ',' or ')' after a quote. Returns whether that quote ends the argument. After ','
  // another argument or the end of the call must follow. After ')' another call or the end of the list must
  // follow.
  std::optional<bool> argument_ends_at(std::size_t begin) const {
    const bool call_ends = text_[begin] == ')';
    const std::size_t next = next_of(begin + 1);
    if (next == std::string_view::npos) return std::nullopt;
    if (call_ends) return std::string_view("],<").contains(text_[next]);
    if (text_[next] == ')') return true;
    std::size_t end = next;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::size_t sign = next_of(end);
    if (sign == std::string_view::npos) return std::nullopt;
    return end > next && text_[sign] == '=';
  }

  std::size_t next_of(std::size_t begin) const { return text_.find_first_not_of(" \t\r\n", begin); }

  std::optional<std::uint32_t> number(std::size_t from, std::size_t digits, int base) const {
    const std::string_view part = text_.substr(std::min(from, text_.size()), digits);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, base);
    if (error != std::errc() || (base == 16 && end != part.data() + digits)) return std::nullopt;
    return value;
  }

  // Reads \uXXXX or \UXXXXXXXX (`digits`). Two escapes can form one character. Returns the number of bytes
  // read; 0 if the escape is invalid.
  std::size_t unicode_escape(std::size_t digits, std::string& out) const {
    auto code = number(at_ + 2, digits, 16);
    if (!code) return 0;
    std::size_t size = 2 + digits;
    const auto low = *code >= 0xD800 && *code < 0xDC00 && text_.substr(at_ + size).starts_with("\\u")
                         ? number(at_ + size + 2, 4, 16)
                         : std::nullopt;
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      size += 6;
    }
    if (*code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) return 0;
    grammar::append_utf8(out, *code);
    return size;
  }

  // Returns the number of bytes that must be available to decode the escape.
  std::size_t escape_size() const {
    switch (text_[at_ + 1]) {
      case 'u': {
        const auto code = number(at_ + 2, 4, 16);
        const bool half = code && *code >= 0xD800 && *code < 0xDC00;
        return !half ? 6 : text_.substr(at_ + 6).starts_with("\\u") ? 12 : 8;
      }
      case 'U':
        return 10;
      default:
        return 4;
    }
  }

  // Reads an escape. Returns false if more text is needed. Like Python, keeps the backslash of an unknown
  // escape.
  bool escape(std::string& out) {
    constexpr std::pair<char, std::string_view> kSimple[] = {
        {'n', "\n"}, {'t', "\t"}, {'r', "\r"},  {'a', "\a"}, {'b', "\b"}, {'f', "\f"},
        {'v', "\v"}, {'\n', ""},  {'\\', "\\"}, {'\'', "'"}, {'"', "\""}};
    if (at_ + 1 == text_.size()) return false;
    const char c = text_[at_ + 1];
    const auto simple = std::ranges::find(kSimple, c, &std::pair<char, std::string_view>::first);
    std::size_t size = 2;
    if (raw_) {
      out += text_.substr(at_, 2);
    } else if (simple != std::end(kSimple)) {
      out += simple->second;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      if (text_.size() - at_ < escape_size()) return false;
      size = unicode_escape(c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    } else if (c >= '0' && c <= '7') {
      if (text_.size() - at_ < escape_size()) return false;
      const std::size_t digits =
          std::min<std::size_t>(text_.substr(at_ + 1).find_first_not_of("01234567"), 3);
      grammar::append_utf8(out, *number(at_ + 1, digits, 8));
      size = 1 + digits;
    } else {
      size = 0;
    }
    if (size == 0) out += text_[at_];
    at_ += std::max<std::size_t>(size, 1);
    return true;
  }

  CallCursor& cursor_;
  const std::string_view text_;
  const bool raw_, nested_quotes_, argument_;
  std::size_t at_ = 0;
};

// Converts a number to JSON. Accepts leading zeros, which models write although Python refuses them.
std::optional<std::string> json_number(std::string_view written) {
  std::string_view text = written;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto plain = without_underscores(text);
  if (!plain || plain->empty() || plain->find_first_of("0123456789") == std::string::npos)
    return std::nullopt;
  const std::string sign = negative ? "-" : "";
  if (plain->size() > 2 && (*plain)[0] == '0' && std::string_view("xXoObB").contains((*plain)[1])) {
    const char kind = static_cast<char>((*plain)[1] | 0x20);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(plain->data() + 2, plain->data() + plain->size(), value,
                                              kind == 'x'   ? 16
                                              : kind == 'o' ? 8
                                                            : 2);
    if (error != std::errc() || end != plain->data() + plain->size()) return std::nullopt;
    return sign + std::to_string(value);
  }
  std::string digits = plain->substr(std::min(plain->find_first_not_of('0'), plain->size()));
  if (digits.empty() || !is_digit(digits.front())) digits.insert(0, "0");
  if (std::ranges::all_of(digits, is_digit)) return sign + digits;
  if (!is_digit(plain->front()) && plain->front() != '.') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(plain->data(), plain->data() + plain->size(), value);
  if (error != std::errc() || end != plain->data() + plain->size() || !std::isfinite(value))
    return std::nullopt;
  if (std::string exact = sign + digits; is_json(exact)) return exact;
  const std::string shortest = fmt::format("{}{}", sign, value);
  return shortest.find_first_of(".e") == std::string::npos ? shortest + ".0" : shortest;
}

std::size_t word_size(std::string_view text) {
  const auto is_sign = [](char c) { return c == '+' || c == '-'; };
  std::size_t size = is_sign(text.front()) ? 1 : 0;
  const bool number = size < text.size() && (is_digit(text[size]) || text[size] == '.');
  for (; size < text.size(); ++size) {
    const bool exponent = number && is_sign(text[size]) && (text[size - 1] | 0x20) == 'e';
    if (!is_word(text[size]) && text[size] != '.' && !exponent) break;
  }
  return size;
}

class LiteralReader {
 public:
  LiteralReader(CallCursor& cursor, bool nested_quotes) : cursor_(cursor), nested_quotes_(nested_quotes) {}

  bool value(std::string& out, int depth) {
    if (!cursor_.ready() || depth > kPythonDepthMax) return false;
    const char first = cursor_.rest().front();
    if (is_quote(first)) return strings(out, depth == 0);
    if (first == '[' || first == '(') return list(out, first == '[' ? ']' : ')', depth);
    if (first == '{') return braces(out, depth);
    return word(out);
  }

  // Reads one string, or several adjacent strings, which Python joins.
  bool strings(std::string& out, bool argument, bool raw = false) {
    std::string content;
    for (;;) {
      if (!StringReader(cursor_, raw, nested_quotes_, argument).read(content)) return false;
      if (!cursor_.ready()) return false;
      if (!is_quote(cursor_.rest().front())) break;
      raw = false;
    }
    out += '"' + grammar::json_escape(content) + '"';
    return true;
  }

 private:
  bool word(std::string& out) {
    const std::string_view rest = cursor_.rest();
    const std::size_t size = word_size(rest);
    if (size == rest.size()) return cursor_.starve();
    const std::string_view text = rest.substr(0, size);
    if (is_quote(rest[size]) && (text == "r" || text == "R" || text == "u" || text == "U")) {
      cursor_.skip(size);
      return strings(out, false, (text[0] | 0x20) == 'r');
    }
    constexpr std::pair<std::string_view, std::string_view> kWords[] = {
        {"True", "true"}, {"False", "false"}, {"None", "null"},
        {"true", "true"}, {"false", "false"}, {"null", "null"}};
    const auto known = std::ranges::find(kWords, text, &std::pair<std::string_view, std::string_view>::first);
    const auto number = known == std::end(kWords) ? json_number(text) : std::string(known->second);
    if (!number) return false;
    out += *number;
    cursor_.skip(size);
    return true;
  }

  // Reads a list or a tuple. Parentheses around one value without a comma do not form a tuple.
  bool list(std::string& out, char end, int depth) {
    cursor_.skip(1);
    std::string items;
    int count = 0;
    bool comma = true;
    for (; !cursor_.next_is(end); ++count) {
      if (cursor_.starved() || !comma) return false;
      if (count > 0) items += ", ";
      if (!value(items, depth + 1)) return false;
      comma = cursor_.literal(",");
    }
    if (cursor_.starved()) return false;
    cursor_.skip(1);
    out += end == ')' && count == 1 && !comma ? items : '[' + items + ']';
    return true;
  }

  bool braces(std::string& out, int depth) {
    cursor_.skip(1);
    std::string items;
    bool first = true, comma = true, dictionary = true;
    while (!cursor_.next_is('}')) {
      if (cursor_.starved() || !comma) return false;
      if (!first) items += ", ";
      std::string key;
      if (!value(key, depth + 1)) return false;
      const bool pair = cursor_.literal(":");
      if (cursor_.starved()) return false;
      if (first) dictionary = pair;
      if (pair != dictionary || (pair && (key.starts_with('[') || key.starts_with('{')))) return false;
      items += pair && key.front() != '"' ? '"' + key + '"' : key;
      if (pair) items += ": ";
      if (pair && !value(items, depth + 1)) return false;
      first = false;
      comma = cursor_.literal(",");
    }
    if (cursor_.starved()) return false;
    cursor_.skip(1);
    out += dictionary ? '{' + items + '}' : '[' + items + ']';
    return true;
  }

  CallCursor& cursor_;
  const bool nested_quotes_;
};

}  // namespace

std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_word(text[i - 1]) || !is_word(text[i + 1]) ||
               text[i + 1] == '_') {
      return std::nullopt;
    }
  }
  return out;
}

bool read_python(CallCursor& cursor, std::string& out, bool nested_quotes) {
  return LiteralReader(cursor, nested_quotes).value(out, 0);
}

}  // namespace octavo::openai
