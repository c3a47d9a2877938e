// Shared rules and counted repetitions must not change the accepted texts.
#include <gtest/gtest.h>

#include <bit>

#include "grammar/json_schema.h"
#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

using testing::accepts;
using testing::byte_vocabulary;

std::shared_ptr<const CompiledGrammar> compile(std::string_view schema) {
  return testing::compiled(json_schema_grammar(schema), schema);
}

TEST(JsonSchemaSharing, CountsAndOrderOfMembers) {
  // Some names are prefixes of other names.
  const std::vector<std::string> names{"ab", "a", "abc", "b", "a\\\"c", "é"};
  for (unsigned required = 0; required < 64; required += 7)
    for (const auto& [min, max] : {std::pair(0, 9), {1, 9}, {3, 9}, {0, 2}, {2, 4}, {3, 3}, {6, 6}, {0, 0}})
      for (const bool open : {false, true}) {
        std::string properties, all_required;
        for (std::size_t i = 0; i < names.size(); ++i) {
          properties += fmt::format(R"({}"{}":{{"const":{}}})", i ? "," : "", names[i], i);
          if (required >> i & 1)
            all_required += fmt::format(R"({}"{}")", all_required.empty() ? "" : ",", names[i]);
        }
        const std::string schema = fmt::format(
            R"({{"type":"object","properties":{{{}}},"required":[{}],"minProperties":{},"maxProperties":{},
                "additionalProperties":{}}})",
            properties, all_required, min, max, open ? R"({"const":"z"})" : "false");
        // A schema without a valid value is an error.
        const auto compiled = [&]() -> Result<std::shared_ptr<const CompiledGrammar>> {
          TRY(const Grammar grammar, json_schema_grammar(schema));
          return CompiledGrammar::compile(grammar, byte_vocabulary());
        }();
        for (unsigned set = 0; set < 128; ++set) {
          std::string text;
          for (std::size_t i = 0; i < names.size(); ++i)
            if (set >> i & 1) text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", names[i], i);
          if (set & 64) text += fmt::format(R"({}"zz":"z")", text.empty() ? "" : ",");
          const int count = std::popcount(set);
          const bool valid =
              (set & required) == required && min <= count && count <= max && (open || !(set & 64));
          EXPECT_EQ(compiled && accepts(*compiled, "{" + text + "}"), valid) << schema << "\n  " << text;
        }
      }
}

// Checks texts of all lengths near the bounds. Repetitions of the patterns are counted at run time or
// unrolled.
TEST(JsonSchemaSharing, LengthsBesidePatterns) {
  struct Pattern {
    std::string_view pattern, begin, unit,
        end;  // the pattern matches `begin unit* end`; `unit` is one character
    int units_min;
  };
  const Pattern patterns[] = {{"^[a-z]*$", "", "q", "", 0},
                              {"^[A-Z][a-z]*$", "Q", "q", "", 0},
                              {"^(?:http|ftp)s?:[^ ]+$", "https:", "\xC3\xA9", "", 1},
                              {"^(?:http|ftp)s?:[^ ]+$", "ftp:", "a", "", 1},
                              {"^x?[0-9]{0,300}y$", "", "7", "y", 0},
                              {"^\\\\p{L}[\\\\p{L} '-]*$", "\xC3\x89", "\xE4\xB8\xAD", "", 0},
                              {"\\\\S", "", " ", "x", 0},
                              {"^\\\\S.*\\\\S$", "a", " ", "b", 0},
                              {"^(?:a|b{2}[^b]*|c)$", "bb", "\xF0\x9F\x98\x80", "", 0},
                              {"a{70,90}$|^b+$", "", "b", "", 1}};
  for (const Pattern& p : patterns)
    for (const auto& [min, max] : {std::pair(0, 60), {3, 200}, {100, 100}, {10, 700}, {0, 7}}) {
      const std::string schema = fmt::format(
          R"({{"type":"string","pattern":"{}","minLength":{},"maxLength":{}}})", p.pattern, min, max);
      const auto grammar = compile(schema);
      ASSERT_TRUE(grammar);
      const int fixed = static_cast<int>(p.begin.size() + p.end.size()) - (p.begin == "\xC3\x89");
      for (const int units :
           {0, 1, 2, 3, 4, 10, 57, 58, 59, 60, 61, 94, 95, 96, 97, 98, 99, 100, 101, 199, 200}) {
        std::string text = "\"" + std::string(p.begin);
        for (int i = 0; i < units; ++i) text += p.unit;
        text += std::string(p.end) + "\"";
        const int length = fixed + units;
        EXPECT_EQ(accepts(grammar, text), units >= p.units_min && min <= length && length <= max)
            << schema << "\n  " << text;
      }
    }
}

// A pattern with a length limit has a state for each length. The masks of these states are stored as
// differences.
TEST(JsonSchemaSharing, MasksOfLengthsBesidePatterns) {
  std::vector<std::string> words;
  std::uint32_t random = 7;
  for (int i = 0; i < 400; ++i) {
    std::string& word = words.emplace_back();
    for (std::uint32_t size = 1 + i % 24; word.size() < size;) {
      random = random * 1664525u + 1013904223u;
      word += "qrst x\"\xC3\xA9"[random >> 29];
    }
  }
  const auto vocabulary = byte_vocabulary(words);
  for (const std::string_view pattern : {"^(?:[^x]+ )*[^x]+$", "^[^x]+:?[^x]*$", "q.*\\\\S"})
    for (const auto& [min, max] : {std::pair(0, 40), {30, 60}, {0, 200}}) {
      const std::string schema = fmt::format(
          R"({{"type":"string","pattern":"{}","minLength":{},"maxLength":{}}})", pattern, min, max);
      const auto grammar = testing::compiled(json_schema_grammar(schema), schema, vocabulary);
      ASSERT_TRUE(grammar);
      Matcher matcher(grammar);
      for (const char c : "\"qs rq" + std::string(static_cast<std::size_t>(max), 'q')) {
        ASSERT_EQ(testing::mask_of(matcher, *vocabulary), testing::brute_force_mask(matcher, *vocabulary))
            << schema << " after " << matcher.accepted();
        if (!matcher.accept(static_cast<std::uint8_t>(c))) break;
      }
    }
}

TEST(JsonSchemaSharing, EqualSubschemas) {
  struct Case {
    std::string_view schema;
    std::vector<std::string_view> yes, no;
  };
  const Case cases[] = {
      {R"({"properties":{"a":{"type":"string","title":"A"},"b":{"type":"string","title":"B"}}})",
       {R"({"a":"x","b":"y"})"},
       {R"({"a":1})", R"({"b":1})"}},
      // Properties that have the name of an annotation keyword (title).
      {R"({"properties":{"a":{"properties":{"title":{"const":1}}},"b":{"properties":{"title":{"const":2}}}}})",
       {R"({"a":{"title":1},"b":{"title":2}})"},
       {R"({"a":{"title":2}})", R"({"b":{"title":1}})"}},
      {R"({"properties":{"a":{"const":{"title":1}},"b":{"const":{"title":2}}}})",
       {R"({"a":{"title":1},"b":{"title":2}})"},
       {R"({"a":{"title":2}})", R"({"b":{"title":1}})"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","properties":{
           "a":{"items":[{"const":1}]},"b":{"items":{"const":1}}}})",
       {R"({"a":[1,2],"b":[1,1]})"},
       {R"({"a":[2]})", R"({"b":[1,2]})"}},
      {R"({"properties":{"a":{"not":{"const":1},"type":"integer"},"b":{"not":{"const":2},"type":"integer"}}})",
       {R"({"a":2,"b":1})"},
       {R"({"a":1})", R"({"b":2})"}},
      {R"({"$defs":{"t":{"properties":{"c":{"$ref":"#/$defs/t"}}}},
           "properties":{"a":{"$ref":"#/$defs/t"},"b":{"properties":{"c":{"$ref":"#/$defs/t"}}}}})",
       {R"({"a":{"c":{"c":{}}},"b":{"c":{}}})"},
       {R"({"a":{"b":{}}})", R"({"b":{"b":{}}})"}},
  };
  for (const Case& c : cases) {
    const auto grammar = compile(c.schema);
    ASSERT_TRUE(grammar);
    for (const auto text : c.yes) EXPECT_TRUE(accepts(grammar, text)) << c.schema << "\n  must take " << text;
    for (const auto text : c.no)
      EXPECT_FALSE(accepts(grammar, text)) << c.schema << "\n  must not take " << text;
  }
}

}  // namespace
}  // namespace octavo::grammar
