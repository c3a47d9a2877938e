// A JSON value as written: members in order, numbers as text, and the position of each value.
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
  std::string text;  // content of a string, or number as written
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;
  std::size_t offset = 0;  // position in the source, in bytes

  // Defined in the .cc file, where the members' types are complete.
  Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  bool is(Kind k) const { return kind == k; }
  const Json* find(std::string_view key) const;
};

// Parses JSON. Errors: duplicate keys, more than kJsonDepthMax levels, invalid UTF-8, lone surrogates; with
// `field` and the offset.
Result<Json> parse_json(std::string_view text, std::string_view field);

// Returns the text for use inside quotes. Escapes only the characters that need it.
std::string json_escape(std::string_view content);
// Returns compact JSON. Numbers are unchanged.
std::string to_text(const Json& value);
// Returns the text, or its first 60 bytes and "..." for an error message.
std::string shortened(std::string text);

}  // namespace octavo::grammar
