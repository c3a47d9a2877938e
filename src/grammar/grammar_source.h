// The source of a grammar as plain data, which grammar_cache.h compiles for a vocabulary.
#pragma once

#include <cstdint>
#include <string>

namespace octavo::grammar {

struct JsonOptions {
  enum class Whitespace : std::uint8_t {
    none,     // compact: no white space
    bounded,  // as common writers do: a space after ':', and a space or an indented line break around parts
  };
  Whitespace whitespace = Whitespace::bounded;

  // Objects with `properties`, but without other keywords for members, have no other members.
  bool strict = true;
  // Members of an object with at most kAnyOrderMax members may have any order. Members of larger objects
  // have the schema's order.
  bool any_order = true;
  // Unknown keywords and formats are errors. Otherwise they are annotations, as in the specification, and
  // each is logged once.
  bool refuse_unknown = false;
  // `uniqueItems` is an error if the grammar by itself cannot enforce it.
  bool refuse_unique = false;
};

enum class GrammarKind : std::uint8_t { json_schema, json_object, regex, ebnf, choice, structural_tag };

struct GrammarSource {
  GrammarKind kind = GrammarKind::json_object;
  std::string text{};      // choice: JSON array of strings; json_object: unused
  JsonOptions options{};   // for kinds that contain JSON
  std::string field = {};  // name of the client's field, for errors
};

}  // namespace octavo::grammar
