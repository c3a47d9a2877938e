// A parsed JSON value that keeps the order of members, the text of numbers, and offsets in the source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octavo::grammar {

struct Json {
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  std::string text;  // content of a string, or text of a number
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;
  std::size_t offset = 0;  // bytes from the start of the source

  // The constructors, assignments and destructor are defined in the .cc file, because Json is incomplete
  // here.
  Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  bool is(Kind k) const { return kind == k; }
  const Json* find(std::string_view key) const;
};

// Returns an error with this field and the offset if the text is not JSON or not UTF-8, or if it has
// duplicate keys, lone surrogates, or more than kJsonDepthMax levels.
Result<Json> parse_json(std::string_view text, std::string_view field);

// Escapes the text for a JSON string. Escapes only characters that need it.
std::string json_escape(std::string_view content);
// Writes compact JSON. Numbers keep their text.
std::string to_text(const Json& value);
// Returns the text, or its first 60 bytes and "...", for error messages.
std::string shortened(std::string text);

}  // namespace octavo::grammar
