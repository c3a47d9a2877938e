#include "fleet/scan/body_json.h"

#include <array>
#include <charconv>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/exact_json.h"
#include "base/json_encoding.h"

namespace octavo::fleet {

namespace json = boost::json;

void* BodyMemory::do_allocate(std::size_t bytes, std::size_t) {
  const bool limited = !parsed_ || !*parsed_;
  if (limited && bytes > bytes_max_ - used_) throw std::bad_alloc();
  void* memory = ::operator new(bytes);
  used_ += bytes;
  return memory;
}

void BodyMemory::do_deallocate(void* memory, std::size_t bytes, std::size_t) {
  used_ -= bytes;
  ::operator delete(memory);
}

namespace {

// Returns nullopt if there is no \uXXXX escape at `at`.
std::optional<unsigned> code_unit(std::string_view text, std::size_t at) {
  unsigned unit = 0;
  const std::string_view escape = text.substr(std::min(at, text.size()), 6);
  if (escape.size() < 6 || !escape.starts_with("\\u")) return std::nullopt;
  const auto [end, error] = std::from_chars(escape.data() + 2, escape.data() + 6, unit, 16);
  return error == std::errc() && end == escape.data() + 6 ? std::optional(unit) : std::nullopt;
}

// Returns the escape at `at`, or U+FFFD if the escape is an unpaired surrogate. Sets `length` to the number
// of bytes to skip.
std::string_view repaired_escape(std::string_view text, std::size_t at, std::size_t& length) {
  constexpr unsigned kHigh = 0xD800, kLow = 0xDC00, kEnd = 0xE000;
  const std::optional<unsigned> unit = code_unit(text, at);
  length = unit ? 6 : 2;
  if (!unit || *unit < kHigh || *unit >= kEnd) return text.substr(at, length);
  const std::optional<unsigned> next = code_unit(text, at + 6);
  if (*unit >= kLow || !next || *next < kLow || *next >= kEnd) return "\\uFFFD";
  length = 12;
  return text.substr(at, length);
}

// Converts JSON that only Python accepts to JSON according to RFC 8259.
std::string strict_json(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNoNumbers{"NaN", "-Infinity", "Infinity"};
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 1;
    std::string_view piece = text.substr(at, 1);
    if (quoted && text[at] == '\\') {
      piece = repaired_escape(text, at, length);
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (const std::string_view name : kNoNumbers)
        if (text.substr(at).starts_with(name)) piece = "null", length = name.size();
    }
    out += piece;
    at += length;
  }
  return out;
}

Result<json::value> parsed(std::string_view text, json::storage_ptr memory) {
  boost::system::error_code error;
  json::value value = parse_exact_json(text, error, std::move(memory), kBodyDepthMax);
  if (error) return invalid("body", "{}", error.message());
  return value;
}

}  // namespace

Result<json::value> body_json(std::string_view text, json::storage_ptr memory) {
  std::string converted;
  TRY(const std::string_view utf8, utf8_json(text, converted));
  try {
    auto value = parsed(utf8, memory);
    if (value || utf8.empty()) return value;
    return parsed(strict_json(utf8), std::move(memory));
  } catch (const std::bad_alloc&) {
    return invalid("body", "has too many values for its size");
  }
}

}  // namespace octavo::fleet
