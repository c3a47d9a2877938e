#include "serve/openai/call_cursor.h"

#include <algorithm>
#include <boost/json/parse.hpp>

namespace octavo::openai {

namespace json = boost::json;

namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

}  // namespace

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::size_t unsettled(std::string_view text, std::string_view mark) {
  for (std::size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size)
    if (text.ends_with(mark.substr(0, size))) return size;
  return 0;
}

std::size_t spaces_at_end(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && is_space(text[text.size() - 1 - size])) ++size;
  return size;
}

bool is_json(const std::string& text) {
  constexpr std::size_t kDepthMax = 256;
  boost::system::error_code error;
  json::parse(text, error, {}, {.max_depth = kDepthMax});
  return !error;
}

std::string whole_arguments(const std::string& raw) {
  boost::system::error_code error;
  const json::value value = json::parse(raw, error);
  if (error) return "";
  if (value.is_null()) return "{}";
  if (value.is_object()) return raw;
  if (!value.is_string()) return "";
  const std::string_view inner = value.get_string();
  if (trimmed(inner).empty()) return "{}";
  const json::value parsed = json::parse(inner, error);
  return !error && parsed.is_object() ? std::string(inner) : "";
}

std::size_t JsonScan::take(std::string_view text) {
  std::size_t i = 0;
  for (; i < text.size() && !done_; ++i) {
    const char c = text[i];
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = in_string_;
    } else if (c == '"') {
      in_string_ = !in_string_;
      done_ = !in_string_ && depth_ == 0;
    } else if (!in_string_ && (c == '{' || c == '[')) {
      ++depth_;
    } else if (!in_string_ && (c == '}' || c == ']')) {
      done_ = --depth_ <= 0;
    }
  }
  return i;
}

bool CallCursor::ready() {
  if (starved_) return false;
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  starved_ = at_ == text_.size();
  return !starved_;
}

bool CallCursor::skip_to(char byte, std::size_t bytes_max) {
  const std::size_t found = rest().substr(0, bytes_max).find(byte);
  if (found == std::string_view::npos) {
    starved_ = starved_ || rest().size() < bytes_max;
    return false;
  }
  at_ += found;
  return true;
}

bool CallCursor::next_is(char byte) { return ready() && text_[at_] == byte; }

bool CallCursor::literal(std::string_view literal) {
  std::size_t at = at_;
  const auto skip = [&] {
    while (at < text_.size() && is_space(text_[at])) ++at;
  };
  if (starved_) return false;
  literal = trimmed(literal);
  if (literal.empty()) return true;
  skip();
  char before = '\0';
  for (const char c : literal) {
    if (before == '>' && c == '<') skip();
    before = c;
    if (is_space(c)) {
      skip();
    } else if (at == text_.size()) {
      starved_ = true;
      return false;
    } else if (text_[at++] != c) {
      return false;
    }
  }
  at_ = at;
  return true;
}

bool CallCursor::name(std::string& out) { return word(out) && !out.empty(); }

// Reads the longest sequence of name characters. If the text ends with this sequence, more text is needed,
// because it may be incomplete.
bool CallCursor::word(std::string& out) {
  if (!ready()) return false;
  std::size_t end = at_;
  while (end < text_.size() && is_name(text_[end])) ++end;
  starved_ = end == text_.size();
  if (starved_) return false;
  out = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

bool CallCursor::value(std::string& out) {
  if (!ready()) return false;
  const char first = text_[at_];
  if (first != '{' && first != '[' && first != '"') {
    std::size_t end = at_;  // A value without quotes or brackets: a number, true, false or null.
    while (end < text_.size() && (is_name(text_[end]) || text_[end] == '+')) ++end;
    starved_ = end == text_.size();
    if (starved_ || end == at_) return false;
    out = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }
  JsonScan scan;
  const std::size_t size = scan.take(text_.substr(at_));
  starved_ = !scan.done();
  if (starved_) return false;
  out = text_.substr(at_, size);
  at_ += size;
  return true;
}

bool CallCursor::string(std::string& out) {
  if (!next_is('"')) return false;
  std::string raw;
  if (!value(raw)) return false;
  boost::system::error_code error;
  const json::value parsed = json::parse(raw, error);
  if (error) return false;
  out = parsed.as_string();
  return true;
}

}  // namespace octavo::openai
