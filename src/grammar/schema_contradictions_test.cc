// Tests the errors for schemas that no value satisfies.
#include <tuple>

#include "grammar/json_schema_cases.h"

namespace octavo::grammar {
namespace {

using testing::Case;
using testing::check;

TEST(JsonSchema, SaysWhyNoValueIsValid) {
  const std::tuple<std::string_view, std::string_view, std::string_view> cases[] = {
      {R"({"type":"string","minLength":5,"maxLength":2})", "'maxLength' at #/maxLength: 2",
       "'minLength' 5 at #/minLength"},
      {R"({"type":"integer","minimum":5,"maximum":2})", "'maximum' at #/maximum: 2",
       "'minimum' 5 at #/minimum"},
      {R"({"type":"number","exclusiveMinimum":2,"maximum":2})", "'maximum' at #/maximum: 2",
       "'exclusiveMinimum' 2"},
      {R"({"type":"array","minItems":3,"maxItems":1})", "'maxItems' at #/maxItems: 1", "'minItems' 3"},
      {R"({"type":"object","minProperties":3,"maxProperties":1})", "'maxProperties' at #/maxProperties: 1",
       "'minProperties' 3"},
      {R"({"enum":[]})", "'enum' at #/enum", "lists no value"},
      {R"({"const":3,"enum":[1,2]})", "#/enum: [1,2]", "'const' at #/const allows: 3"},
      {R"({"type":"string","enum":[1,2]})", "'enum' at #/enum: [1,2]", "'type'"},
      {R"({"type":"object","required":["a"],"additionalProperties":false})", "'required' at #/required: 'a'",
       "'additionalProperties' at #/additionalProperties"},
      {R"({"type":"object","properties":{"a":false},"required":["a"]})", "'required' at #/required: 'a'",
       "is false"},
      {R"({"type":"object","propertyNames":{"pattern":"^b"},"required":["a"]})",
       "'required' at #/required: 'a'", "'propertyNames' at #/propertyNames"},
      {R"({"type":"integer","multipleOf":7,"minimum":1,"maximum":6})", "'maximum' at #/maximum",
       "no integer satisfies all of"},
      {R"({"type":"string","pattern":"^a$","minLength":3})", "at #/minLength",
       "no string satisfies all of 'type', 'pattern'"},
      {R"({"allOf":[{"type":"string"},{"type":"integer"}]})", "'type' at #/allOf/1/type", "allows no type"},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"type":"string"}})", "'type' at",
       "allows no type"},
      {R"({"type":"array","items":false,"minItems":1})", "no array satisfies all of", "'minItems'"},
      {R"({"anyOf":[false,{"type":"string","maxLength":0,"minLength":1}]})",
       "'maxLength' at #/anyOf/1/maxLength: 0", "'minLength' 1"},
      {R"({"not":{}})", "excludes all values", ""},
      {R"({"type":"object","properties":{"b":{"enum":[]},"a":{"$ref":"#/$defs/x"}},"required":["a"],)"
       R"("$defs":{"x":{"type":"array","minItems":1,"items":{"minLength":9,"maxLength":2,"type":"string"}}}})",
       "'maxLength' at #/$defs/x/items/maxLength: 2", "'minLength' 9"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "without end", ""},
      {"false", "the schema is false", ""},
  };
  for (const auto& [schema, first, second] : cases)
    for (const bool any_order : {false, true}) {
      JsonOptions options;
      options.any_order = any_order;
      const auto grammar = json_schema_grammar(schema, options);
      ASSERT_FALSE(grammar) << schema;
      EXPECT_NE(grammar.error().message.find(first), std::string::npos) << schema << "\n"
                                                                        << grammar.error().message;
      EXPECT_NE(grammar.error().message.find(second), std::string::npos) << schema << "\n"
                                                                         << grammar.error().message;
    }
}

TEST(JsonSchema, ErrorsSayWhatIsProbablyMeant) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"type":"str"})", R"(or a list of these, not "str"; did you mean "string"?)"},
      {R"({"type":"OBJECT"})", R"(did you mean "object"?)"},
      {R"({"type":["integer","strnig"]})", R"(not "strnig"; did you mean "string"?)"},
      {R"({"type":["string",null]})", "or a list of these, not null"},
      {R"({"properties":{"a":{"required":true}}})",
       "'required' at #/properties/a/required: must be an array of member names; add the name of this "
       "member"},
      {R"({"dependentRequired":{"a":"b"}})",
       "'dependentRequired' at #/dependentRequired: the value of 'a' must be an array of member names"},
      {R"({"$ref":"/$defs/A","$defs":{"A":{}}})", "'/$defs/A' is another document; write '#/$defs/A'"},
      {R"({"$ref":"#/definitions/A","$defs":{"A":{}}})", "points nowhere; did you mean '#/$defs/A'?"},
      {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"type":"object","properties":{"b":{}},"required":["b"]}]})",
       "'b' is required, but 'additionalProperties' at #/allOf/0/additionalProperties does not allow it"},
      {R"({"name":"person","schema":{"type":"object"},"strict":true})",
       "'schema' contains a schema; send only"},
      {R"({"name":"find","parameters":{"properties":{}}})", "'parameters' contains a schema; send only"},
      {"\xEF\xBB\xBF{}", "found a byte order mark (U+FEFF); remove it"},
  };
  for (const auto& [schema, message] : cases) {
    const auto grammar = json_schema_grammar(schema, {});
    ASSERT_FALSE(grammar) << schema;
    EXPECT_NE(grammar.error().message.find(message), std::string::npos) << schema << "\n"
                                                                        << grammar.error().message;
  }
  EXPECT_TRUE(json_schema_grammar(R"({"type":"object","schema":{"type":"object"}})", {}));
  EXPECT_TRUE(json_schema_grammar(R"({"schema":5})", {}));
}

TEST(JsonSchema, DeadPartsAreLeftOut) {
  const Case cases[] = {
      {R"({"type":"object","properties":{"a":{"enum":[]},"b":{}}})", {R"({"b":1})", "{}"}, {R"({"a":1})"}},
      {R"({"anyOf":[{"type":"string","minLength":2,"maxLength":1},{"type":"null"}]})", {"null"}, {R"("a")"}},
      {R"({"type":"array","items":false})", {"[]"}, {"[1]"}}};
  check(cases);
}

}  // namespace
}  // namespace octavo::grammar
