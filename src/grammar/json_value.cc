#include "grammar/json_value.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "grammar/limits.h"
#include "grammar/text_position.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

Json::Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

const Json* Json::find(std::string_view key) const {
  const auto it = std::ranges::find(members, key, &std::pair<std::string, Json>::first);
  return it == members.end() ? nullptr : &it->second;
}

namespace {

class JsonParser {
 public:
  JsonParser(std::string_view text, std::string_view field) : text_(text), field_(field) {}

  Result<Json> parse() {
    if (text_.size() > kJsonBytesMax)
      return invalid(field_, "JSON: the text has {} bytes, the limit is {}; shorten it", text_.size(),
                     kJsonBytesMax);
    if (const auto bad = invalid_utf8(text_))
      return invalid(field_, "JSON, {}: invalid UTF-8; send the text as UTF-8", line_and_column(text_, *bad));
    Json value;
    TRY_VOID(read(value, 1));
    skip_space();
    if (at_ != text_.size())
      return error("expected the end of the text after the value, found {}", found_at(text_, at_));
    return value;
  }

 private:
  template <class... Args>
  std::unexpected<Error> error(fmt::format_string<Args...> text, Args&&... args) const {
    return invalid(field_, "JSON, {}: {}", line_and_column(text_, at_),
                   fmt::format(text, std::forward<Args>(args)...));
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").contains(text_[at_])) ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view s) { return text_.substr(at_).starts_with(s) && (at_ += s.size(), true); }

  Result<void> read(Json& value, int depth) {
    skip_space();
    if (depth > kJsonDepthMax)
      return error("values are nested too deeply, more than {} levels; flatten them", kJsonDepthMax);
    value.offset = at_;
    if (take("{")) return read_object(value, depth);
    if (take("[")) return read_array(value, depth);
    if (take("\"")) {
      value.kind = Json::Kind::string;
      return read_string(value.text);
    }
    if (take("null")) return {};
    if (const bool yes = take("true"); yes || take("false")) {
      value.kind = Json::Kind::boolean;
      value.boolean = yes;
      return {};
    }
    return read_number(value);
  }

  Result<void> read_object(Json& value, int depth) {
    value.kind = Json::Kind::object;
    skip_space();
    if (take("}")) return {};
    std::unordered_set<std::string> keys;
    do {
      skip_space();
      std::string key;
      if (!take("\"")) return error("expected a name in double quotes, found {}", found_at(text_, at_));
      TRY_VOID(read_string(key));
      if (!keys.insert(key).second) return error("the name '{}' occurs twice in an object; remove one", key);
      skip_space();
      if (!take(":")) return error("expected ':' after the name, found {}", found_at(text_, at_));
      value.members.emplace_back(std::move(key), Json{});
      TRY_VOID(read(value.members.back().second, depth + 1));
      skip_space();
    } while (take(","));
    if (!take("}")) return error("expected ',' or '}}', found {}", found_at(text_, at_));
    return {};
  }

  Result<void> read_array(Json& value, int depth) {
    value.kind = Json::Kind::array;
    skip_space();
    if (take("]")) return {};
    do {
      value.items.emplace_back();
      TRY_VOID(read(value.items.back(), depth + 1));
      skip_space();
    } while (take(","));
    if (!take("]")) return error("expected ',' or ']', found {}", found_at(text_, at_));
    return {};
  }

  std::unexpected<Error> half_pair() const {
    return error("half of a surrogate pair; write \\uD800 to \\uDBFF and then \\uDC00 to \\uDFFF");
  }

  Result<void> read_string(std::string& out) {
    while (!take("\"")) {
      if (at_ == text_.size()) return error("a string has no closing double quote");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20)
        return error("a control character in a string; write it as an escape such as \\n or \\u0001");
      if (c != '\\') {
        out.push_back(c);
        ++at_;
        continue;
      }
      ++at_;
      constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
      if (const auto i = kNames.find(peek()); i != std::string_view::npos && peek() != '\0') {
        out.push_back(kValues[i]);
        ++at_;
        continue;
      }
      if (!take("u"))
        return error("unknown escape: \\ before {}; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uHHHH",
                     found_at(text_, at_));
      auto c1 = hex4();
      if (!c1) return error("\\u needs 4 hexadecimal digits, found {}", found_at(text_, at_));
      if (*c1 >= 0xD800 && *c1 < 0xDC00 && take("\\u")) {
        const auto c2 = hex4();
        if (!c2 || *c2 < 0xDC00 || *c2 > 0xDFFF) return half_pair();
        c1 = 0x10000 + ((*c1 - 0xD800) << 10) + (*c2 - 0xDC00);
      }
      if (*c1 >= 0xD800 && *c1 < 0xE000) return half_pair();
      append_utf8(out, *c1);
    }
    return {};
  }

  std::optional<std::uint32_t> hex4() {
    if (at_ + 4 > text_.size()) return std::nullopt;
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const auto digit = std::string_view("0123456789abcdef")
                             .find(static_cast<char>(text_[at_ + static_cast<std::size_t>(i)] | 0x20));
      if (digit == std::string_view::npos) return std::nullopt;
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    at_ += 4;
    return value;
  }

  bool digits() {
    const std::size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > start;
  }

  Result<void> read_number(Json& value) {
    const std::size_t start = at_;
    take("-");
    if (!take("0") && !digits()) return error("expected a value, found {}", found_at(text_, at_));
    if (take(".") && !digits()) return error("expected a digit, found {}", found_at(text_, at_));
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      if (!digits()) return error("expected a digit, found {}", found_at(text_, at_));
    }
    value.kind = Json::Kind::number;
    value.text = text_.substr(start, at_ - start);
    return {};
  }

  std::string_view text_, field_;
  std::size_t at_ = 0;
};

void write(const Json& value, std::string& out) {
  switch (value.kind) {
    case Json::Kind::null:
      out += "null";
      break;
    case Json::Kind::boolean:
      out += value.boolean ? "true" : "false";
      break;
    case Json::Kind::number:
      out += value.text;
      break;
    case Json::Kind::string:
      out += fmt::format("\"{}\"", json_escape(value.text));
      break;
    case Json::Kind::array:
      out += '[';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ',';
        write(value.items[i], out);
      }
      out += ']';
      break;
    case Json::Kind::object:
      out += '{';
      for (std::size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) out += ',';
        out += fmt::format("\"{}\":", json_escape(value.members[i].first));
        write(value.members[i].second, out);
      }
      out += '}';
      break;
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view field) { return JsonParser(text, field).parse(); }

std::string json_escape(std::string_view content) {
  std::string out;
  for (const char c : content) {
    if (const auto i = std::string_view("\"\\\b\f\n\r\t").find(c); i != std::string_view::npos) {
      out.push_back('\\');
      out.push_back("\"\\bfnrt"[i]);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string to_text(const Json& value) {
  std::string out;
  write(value, out);
  return out;
}

std::string shortened(std::string text) {
  constexpr std::size_t kShownMax = 60;
  if (text.size() <= kShownMax) return text;
  std::size_t size = kShownMax;
  while (size > 0 && (text[size] & 0xC0) == 0x80) --size;  // does not split a character
  return text.substr(0, size) + "...";
}

}  // namespace octavo::grammar
