#include "serve/openai/tool_parameters.h"

#include <gtest/gtest.h>

namespace octavo::openai {
namespace {

constexpr std::string_view kSchema = R"({"type": "object", "$defs": {"Level": {"enum": ["low", "high"]},
    "Count": {"type": "integer"}, "Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
  "properties": {
    "flag": {"type": "boolean"}, "n": {"type": "integer"}, "ratio": {"type": "number"},
    "text": {"type": "string"}, "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "maybe2": {"type": ["string", "null"]}, "count": {"anyOf": [{"$ref": "#/$defs/Count"}, {"type": "null"}]},
    "list": {"type": "array", "items": {"type": "string"}}, "point": {"$ref": "#/$defs/Point"},
    "level": {"$ref": "#/$defs/Level"}, "mode": {"enum": [1, "auto", null]}, "two": {"const": 2},
    "either": {"type": ["integer", "string"]}, "anything": {}, "python": {"type": "bool"}}})";

TEST(ToolParameters, TheSchemaDecides) {
  const ToolParameters parameters(kSchema, false);
  constexpr struct {
    std::string_view name, written, value;
  } kCases[] = {
      {"flag", "True", "true"},
      {"flag", "False", "false"},
      {"flag", "\ntrue\n", "true"},
      {"flag", "1", "true"},
      {"flag", "yes", R"("yes")"},
      {"python", "False", "false"},
      {"n", "007", "7"},
      {"n", "+5", "5"},
      {"n", "-0", "0"},
      {"n", " -12 ", "-12"},
      {"n", "123456789012345678901234567890", "123456789012345678901234567890"},
      {"n", "5.0", "5.0"},
      {"n", "five", R"("five")"},
      {"ratio", "+1.5", "1.5"},
      {"ratio", "5.0", "5"},
      {"ratio", ".5", "0.5"},
      {"ratio", "1e400", R"("1e400")"},
      {"ratio", "nan", R"("nan")"},
      {"text", "true", R"("true")"},
      {"text", " 5\n", R"(" 5\n")"},
      {"maybe", "123", R"("123")"},
      {"maybe", "true", R"("true")"},
      {"maybe", R"({"a": 1})", R"("{\"a\": 1}")"},
      {"maybe", "null", "null"},
      {"maybe", "None", R"("None")"},
      {"maybe2", "123", R"("123")"},
      {"maybe2", "null", "null"},
      {"count", "12", "12"},
      {"count", "None", "null"},
      {"list", R"(["a", "b"])", R"(["a", "b"])"},
      {"list", "['a', 'b']", R"(["a", "b"])"},
      {"list", "a, b", R"("a, b")"},
      {"point", R"({"x": 1.5})", R"({"x": 1.5})"},
      {"point", "{'x': None, 'ok': True}", R"({"x": null, "ok": true})"},
      {"level", "high", R"("high")"},
      {"mode", "1", "1"},
      {"mode", "auto ", R"("auto")"},
      {"mode", "null", "null"},
      {"two", "2", "2"},
      {"either", "5", "5"},
      {"either", "5a", R"("5a")"},
      {"anything", "5", R"("5")"},
      {"other", "5", R"("5")"},
  };
  for (const auto& [name, written, value] : kCases)
    EXPECT_EQ(parameters.value(name, written), value) << name << ": " << written;
  EXPECT_TRUE(parameters.is_text("text"));
  EXPECT_TRUE(parameters.is_text("level"));
  EXPECT_FALSE(parameters.is_text("maybe"));
}

TEST(ToolParameters, WhatTheSchemaDoesNotSayTheModelSays) {
  const ToolParameters parameters(kSchema, false);
  EXPECT_EQ(parameters.value("other", "5", false), "5");
  EXPECT_EQ(parameters.value("other", "five", false), R"("five")");
  EXPECT_EQ(parameters.value("text", "5", false), R"("5")");
  EXPECT_EQ(ToolParameters(R"({"additionalProperties": {"type": "integer"}})", false).value("x", "05"), "5");
  EXPECT_EQ(ToolParameters(R"({"allOf": [{"properties": {"x": {"type": "integer"}}}]})", false).value("x", "5"),
            "5");
}

TEST(ToolParameters, SchemasThatLeadNowhere) {
  for (const std::string_view schema :
       {"", "[", "5", R"({"properties": 5})", R"({"properties": {"x": {"$ref": "#/properties/x"}}})",
        R"({"$ref": "#", "allOf": [{"$ref": "#"}]})", R"({"properties": {"x": {"$ref": "other.json"}}})"})
    EXPECT_EQ(ToolParameters(schema, false).value("x", "5"), R"("5")") << schema;
}

// The grammar of a strict tool writes what is no string as JSON.
TEST(ToolParameters, StrictValuesAreAsTheGrammarWritesThem) {
  const ToolParameters parameters(kSchema, true);
  EXPECT_EQ(parameters.value("maybe", R"("123")"), R"("123")");
  EXPECT_EQ(parameters.value("text", R"("123")"), R"("\"123\"")");
}

}  // namespace
}  // namespace octavo::openai
