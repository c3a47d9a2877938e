// Source of a grammar (response_format, guided_json, and so on), which GrammarCache compiles for a
// vocabulary.
#pragma once

#include <cstdint>
#include <string>

namespace octavo::grammar {

struct JsonOptions {
  enum class Whitespace : std::uint8_t {
    none,  // compact: no white space
    // white space as common programs write it: one space after ':', and one space or an indented line break
    // between members or items
    bounded,
  };
  Whitespace whitespace = Whitespace::bounded;

  // true: an object with `properties` has no other members, unless another keyword allows them.
  bool strict = true;
  // true: the members of an object may have any order if the schema lists at most kAnyOrderMax. With more
  // members, and if false, they have the order of the schema.
  bool any_order = true;
  // true: an unknown keyword or format is an error. false: it is ignored, as in the JSON Schema
  // specification, and logged once.
  bool refuse_unknown = false;
  // true: a `uniqueItems` that the grammar cannot enforce is an error. false: the matcher enforces it
  // (unique_items.h).
  bool refuse_unique = false;
};

enum class GrammarKind : std::uint8_t { json_schema, json_object, regex, ebnf, choice, structural_tag };

struct GrammarSource {
  GrammarKind kind = GrammarKind::json_object;
  std::string text{};      // choice: JSON array of strings; json_object: unused
  JsonOptions options{};   // for kinds that contain JSON
  std::string field = {};  // name of the request field, for errors
};

}  // namespace octavo::grammar
