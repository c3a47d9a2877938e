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
  EXPECT_EQ(
      ToolParameters(R"({"allOf": [{"properties": {"x": {"type": "integer"}}}]})", false).value("x", "5"),
      "5");
}

TEST(ToolParameters, NumbersAsPythonWritesThem) {
  const ToolParameters parameters(kSchema, false);
  EXPECT_EQ(parameters.value("n", "1_000"), "1000");
  EXPECT_EQ(parameters.value("n", "1__0"), R"("1__0")");
  EXPECT_EQ(parameters.value("n", "_1"), R"("_1")");
  EXPECT_EQ(parameters.value("ratio", "1_0.5"), "10.5");
}

TEST(ToolParameters, MembersAndItemsFollowTheirSchemas) {
  const ToolParameters parameters(
      R"({"$defs": {"Item": {"type": "object", "properties": {"n": {"type": "integer"},
        "s": {"type": "string"}, "more": {"type": "array", "items": {"$ref": "#/$defs/Item"}}}}},
      "properties": {"item": {"$ref": "#/$defs/Item"},
        "items": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Item"}}, {"type": "null"}]},
        "pair": {"prefixItems": [{"type": "integer"}, {"type": "string"}]}, "flags": {"type": "array",
        "items": {"type": "boolean"}}, "map": {"additionalProperties": {"type": "number"}}}})",
      false);
  constexpr struct {
    std::string_view name, written, value;
  } kCases[] = {
      {"item", R"({"n": "05", "s": 5})", R"({"n":5,"s":"5"})"},
      {"item", R"({"n": 5, "s": "5", "x": "5"})", R"({"n": 5, "s": "5", "x": "5"})"},
      {"item", R"({"n": "five"})", R"({"n": "five"})"},
      {"item", R"({"more": [{"n": "1", "more": [{"s": true}]}]})",
       R"({"more":[{"n":1,"more":[{"s":"true"}]}]})"},
      {"items", R"([{"n": "1"}])", R"([{"n":1}])"},
      {"pair", R"(["1", 2])", R"([1,"2"])"},
      {"flags", R"(["True", false, "no"])", R"([true,false,"no"])"},
      {"map", R"({"a": "1.50", "b": 12345678901234567890123})", R"({"a":1.50,"b":12345678901234567890123})"},
  };
  for (const auto& [name, written, value] : kCases)
    EXPECT_EQ(parameters.value(name, written), value) << name << ": " << written;
}

TEST(ToolParameters, ReferencesAreEscapedPointers) {
  const ToolParameters parameters(
      R"({"$defs": {"a/b": {"type": "integer"}, "c d": {"type": "integer"}}, "properties": {
      "x": {"$ref": "#/$defs/a~1b"}, "y": {"$ref": "#/$defs/c%20d"}, "z": {"$ref": "#/properties/x"}}})",
      false);
  for (const std::string_view name : {"x", "y", "z"}) EXPECT_EQ(parameters.value(name, "5"), "5") << name;
}

TEST(ToolParameters, AnObjectInPlaceOfItsMembers) {
  const ToolParameters parameters(kSchema, false);
  EXPECT_EQ(parameters.unwrapped(R"({"n": "5", "text": "x"})"), R"({"n":5,"text":"x"})");
  EXPECT_EQ(parameters.unwrapped("{'text': 'x'}"), R"({"text": "x"})");
  for (const std::string_view text : {R"({"n": 5, "unknown": 1})", "{}", "[1]", "x", ""})
    EXPECT_EQ(parameters.unwrapped(text), "") << text;
  EXPECT_EQ(ToolParameters().unwrapped(R"({"n": 5})"), "");
}

TEST(ToolParameters, SchemasThatLeadNowhere) {
  for (const std::string_view schema :
       {"", "[", "5", R"({"properties": 5})", R"({"properties": {"x": {"$ref": "#/properties/x"}}})",
        R"({"$ref": "#", "allOf": [{"$ref": "#"}]})", R"({"properties": {"x": {"$ref": "other.json"}}})"})
    EXPECT_EQ(ToolParameters(schema, false).value("x", "5"), R"("5")") << schema;
}

// The grammar of a strict tool writes all values except strings as JSON.
TEST(ToolParameters, StrictValuesAreAsTheGrammarWritesThem) {
  const ToolParameters parameters(kSchema, true);
  EXPECT_EQ(parameters.value("maybe", R"("123")"), R"("123")");
  EXPECT_EQ(parameters.value("text", R"("123")"), R"("\"123\"")");
}

}  // namespace
}  // namespace octavo::openai
