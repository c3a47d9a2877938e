// A grammar as somebody wrote it: plain data, to be compiled for a vocabulary (grammar_cache.h).
#pragma once

#include <cstdint>
#include <string>

namespace octavo::grammar {

struct JsonOptions {
  enum class Whitespace : std::uint8_t {
    none,     // compact: no space anywhere
    bounded,  // a space after ':', and a space or a line break with indentation around parts: what writers
              // use
  };
  Whitespace whitespace = Whitespace::bounded;

  // Objects that list `properties` and say nothing of others have no others.
  bool strict = true;
  // Members may come in any order, in objects of at most kAnyOrderMax; otherwise in the schema's order.
  bool any_order = true;
  // Keywords and formats that are not known are errors; otherwise they are annotations, as the specification
  // has it, and named in the log once.
  bool refuse_unknown = false;
  // `uniqueItems` is an error where the grammar alone cannot enforce it.
  bool refuse_unique = false;
};

enum class GrammarKind : std::uint8_t { json_schema, json_object, regex, ebnf, choice, structural_tag };

struct GrammarSource {
  GrammarKind kind = GrammarKind::json_object;
  std::string text{};      // for choice: a JSON array of strings; for json_object: unused
  JsonOptions options{};   // for the kinds that hold JSON
  std::string field = {};  // the caller's name of it, for errors
};

}  // namespace octavo::grammar
