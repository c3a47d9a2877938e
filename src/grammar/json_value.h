// JSON as text means it: members in order, numbers as written, the place of everything.
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
  std::string text;  // a string's content, a number as written
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;
  std::size_t offset = 0;  // position in the source

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

// Refuses duplicate keys, nesting beyond kJsonDepthMax, invalid UTF-8 and lone surrogates; errors name
// `field` and the offset.
Result<Json> parse_json(std::string_view text, std::string_view field);

// The text inside the quotes, with only those characters escaped that must be.
std::string json_escape(std::string_view content);
// Compact JSON; numbers as they were written.
std::string to_text(const Json& value);

}  // namespace octavo::grammar
