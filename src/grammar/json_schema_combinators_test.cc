#include "grammar/json_schema_cases.h"

namespace octavo::grammar {
namespace {

using testing::accepts;
using testing::Case;
using testing::check;
using testing::compile;

TEST(JsonSchema, Combinators) {
  const Case cases[] = {
      {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
       {"1", R"("a")"},
       {R"("ab")", "null"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]})",
       {R"({"a":1,"b":"x"})"},
       {R"({"a":1})", R"({"b":"x"})"}},
      {R"({"allOf":[{"minimum":3},{"maximum":9}],"type":"integer"})", {"3", "9"}, {"2", "10"}},
      {R"({"properties":{"a":{"minimum":3}},"allOf":[{"properties":{"a":{"maximum":5,"type":"integer"}}}],"type":"object"})",
       {R"({"a":4})"},
       {R"({"a":6})", R"({"a":2})"}},
      {R"({"oneOf":[{"type":"integer","maximum":5},{"type":"integer","minimum":3}]})",
       {"1", "9", "2", "6"},
       {"3", "4", "5"}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},
                    {"type":"object","properties":{"k":{"const":"b"},"y":{"type":"string"}},"required":["k","y"]}]})",
       {R"({"k":"a","x":1})", R"({"k":"b","y":"q"})"},
       {R"({"k":"a","y":"q"})", R"({"k":"c"})"}},
      {R"({"type":["integer","null"],"not":{"const":3}})", {"2", "null", "33"}, {"3"}},
      // The grammar has no exponents here, because 10e-1 would be 1.
      {R"({"type":"number","not":{"const":1}})",
       {"2", "1.5", "10", "0.1", "-1"},
       {"1", "1.0", "1.00", "10e-1", "1e0"}},
      {R"({"type":"number","not":{"enum":[0,2.50]}})",
       {"2.51", "2", "25"},
       {"0", "-0", "0.0", "2.5", "2.500"}},
      {R"({"not":{"enum":[[],{},1]}})", {"[1]", R"({"a":1})", "2", "null"}, {"[]", "{}", "[ ]", "1", "1.0"}},
      {R"({"type":"number","not":{"multipleOf":2}})",
       {"1", "2.5", "-3"},
       {"2", "0", "-0", "4.0", "4.000000000000", "2e0"}},
      {R"({"enum":[1,2,2.5,"a"],"not":{"multipleOf":2}})", {"1", "2.5"}, {"2", R"("a")"}},
      {R"({"contains":{"const":1},"maxContains":1,"type":"array"})",
       {"[1]", "[2,1]"},
       {"[1,1]", "[1.0,1]", "[2]", "[]"}},
      {R"({"not":{"contains":{"type":"string"}}})", {"[1]", "[]", "[1,[]]"}, {R"(["a"])", R"([1,"a"])", "1"}},
      {R"({"not":{"items":{"type":"string"}}})", {"[1]", R"(["a",1])"}, {"[]", R"(["a"])", "1", "{}"}},
      {R"({"oneOf":[{"type":"array","items":{"type":"string"}},{"type":"array","items":{"type":"integer"}}]})",
       {R"(["a"])", "[1,2]"},
       {"[]", R"(["a",1])"}},
      // Subschemas with additionalProperties false that differ in the listed members.
      {R"({"oneOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},
                    {"type":"object","properties":{"b":{}},"additionalProperties":false},{"type":"string"}]})",
       {R"({"a":1})", R"({"b":1})", R"("x")"},
       {"{}", R"({"a":1,"b":1})", "1"}},
      {R"({"oneOf":[{"properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false},
                    {"properties":{"a":{},"c":{}},"additionalProperties":false}],"type":"object"})",
       {R"({"a":1,"b":1})", R"({"a":1,"c":1})", R"({"c":1})", "{}"},
       {R"({"a":1})", R"({"b":1})", R"({"b":1,"c":1})"}},
      {R"({"type":["object","string"],"properties":{"a":{},"b":{}},"not":{"properties":{"a":{}},"additionalProperties":false}})",
       {R"({"b":1})", R"({"a":1,"b":1})"},
       {"{}", R"({"a":1})", R"("x")"}},
      {R"({"required":["b"],"properties":{"b":{}},"not":{"additionalProperties":false}})",
       {R"({"b":1})"},
       {"{}", R"("x")", "1"}},
      // A grammar cannot express that a format fails, but it can express that a property is missing.
      {R"({"oneOf":[{"properties":{"u":{"type":"string","format":"uri"},"a":{}},"required":["u","a"]},
                    {"properties":{"u":{"type":"string"},"a":{"type":"null"},"b":{}},"required":["u","b"]}],
           "type":"object"})",
       {R"({"u":"urn:x","a":1})", R"({"u":"x","b":1})", R"({"u":"urn:x","a":1})"},
       {R"({"u":"x","a":1})", R"({"u":"urn:x"})", R"({"u":"urn:x","a":null,"b":1})"}},
      {R"({"not":{"type":["object","array","string","number"]}})", {"null", "true"}, {"1", "{}"}},
      {R"({"type":"object","properties":{"k":{"enum":["a","b"]},"v":{}},"required":["k","v"],
           "if":{"properties":{"k":{"const":"a"}}},"then":{"properties":{"v":{"type":"integer"}}},"else":{"properties":{"v":{"type":"string"}}}})",
       {R"({"k":"a","v":1})", R"({"k":"b","v":"x"})"},
       {R"({"k":"a","v":"x"})", R"({"k":"b","v":1})"}},
      {R"({"anyOf":[{"required":["a"]},{"required":["b"]}],"type":"object","properties":{"a":{},"b":{}}})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":1})"},
       {"{}"}},
      {R"({"$ref":"#/$defs/x","$defs":{"x":{"type":"integer"}}})", {"1"}, {"null"}},
      {R"({"$ref":"#/$defs/x","minimum":5,"$defs":{"x":{"type":"integer"}}})", {"5"}, {"4"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/x","minimum":5,"definitions":{"x":{"type":"integer"}}})",
       {"4"},
       {"null"}},
      {R"({"$ref":"#leaf","$defs":{"x":{"$anchor":"leaf","type":"null"}}})", {"null"}, {"1"}},
      {R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"]})",
       {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
       {R"({"v":1,"next":{}})", R"({"v":1,"next":{"v":2})"}},
      {R"({"$defs":{"t":{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#/$defs/t"}}]}},"$ref":"#/$defs/t"})",
       {"[[1,[2]],3]", "1"},
       {"[[1]", "[null]"}},
      {R"({"$defs":{"a b/c~d":{"type":"null"}},"$ref":"#/$defs/a%20b~1c~0d"})", {"null"}, {"1"}},
  };
  check(cases);
}

TEST(JsonSchema, Unevaluated) {
  const Case cases[] = {
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"unevaluatedProperties":false})",
       {"{}", R"({"a":1})"},
       {R"({"b":1})"}},
      {R"({"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}},{"$ref":"#/$defs/x"}],"unevaluatedProperties":{"type":"null"},
           "$defs":{"x":{"patternProperties":{"^p":{"type":"string"}}}}})",
       {R"({"a":1,"p1":"s","z":null})"},
       {R"({"a":null})", R"({"p1":null})", R"({"z":1})"}},
      {R"({"$ref":"#/$defs/x","$defs":{"x":{"type":"object","anyOf":[{"properties":{"k":{"const":1},"a":{}},"required":["k"]},
           {"properties":{"k":{"const":2},"b":{}},"required":["k"]}],"unevaluatedProperties":false}}})",
       {R"({"k":1,"a":0})", R"({"k":2,"b":0})"},
       {R"({"k":1,"b":0})", R"({"k":2,"a":0})"}},
      {R"({"type":"object","properties":{"k":{"type":"boolean"}},"required":["k"],"if":{"properties":{"k":{"const":true}}},
           "then":{"properties":{"a":{}}},"unevaluatedProperties":false})",
       {R"({"k":true,"a":0})", R"({"k":false})"},
       {R"({"k":false,"a":0})"}},
      {R"({"type":"object","allOf":[{"additionalProperties":{"type":"null"}}],"unevaluatedProperties":false})",
       {R"({"a":null})"},
       {R"({"a":1})"}},
      {R"({"type":"array","allOf":[{"prefixItems":[{"type":"integer"}]}],"unevaluatedItems":false})",
       {"[]", "[1]"},
       {"[1,1]", "[null]"}},
      // unevaluatedItems and unevaluatedProperties with the value `true` evaluate all remaining items or
      // properties.
      {R"({"type":"array","allOf":[{"prefixItems":[{"type":"integer"}]},{"unevaluatedItems":true}],"unevaluatedItems":false})",
       {"[1]", R"([1,"a",null])"},
       {"[null]"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false})",
       {R"({"a":1,"b":null})", R"({"b":1})"},
       {R"({"a":null})"}},
      // Since draft 2020-12, items that match `contains` count as evaluated.
      {R"({"type":"array","contains":{"type":"string"},"minContains":0,"unevaluatedItems":false})",
       {"[]", R"(["a","b"])"},
       {"[1]", R"(["a",1])"}},
      {R"({"type":"array","prefixItems":[{"type":"null"}],"contains":{"type":"string"},"unevaluatedItems":{"type":"integer"}})",
       {R"([null,"a"])", R"([null,1,"a",2])"},
       {"[null,1]", R"([null,"a",true])"}},
      {R"({"$schema":"https://json-schema.org/draft/2019-09/schema","type":"array","contains":{"type":"string"},
           "unevaluatedItems":{"type":"string"}})",
       {R"(["a"])"},
       {R"(["a",1])", "[]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"}],"unevaluatedItems":{"type":"null"}})",
       {"[1,null,null]"},
       {"[1,1]"}},
      {R"({"type":"array","items":{"type":"integer"},"unevaluatedItems":false})", {"[1,2]"}, {"[null]"}},
      {R"({"$schema":"https://json-schema.org/draft/2019-09/schema","type":"array","items":[{"type":"integer"}],
           "unevaluatedItems":false})",
       {"[]", "[1]"},
       {"[1,2]", R"(["a"])"}},
      {R"({"$schema":"https://json-schema.org/draft/2019-09/schema","type":"array","items":[{"type":"integer"}],
           "additionalItems":{"type":"string"},"unevaluatedItems":false})",
       {"[1]", R"([1,"a"])"},
       {"[1,2]"}},
      {R"({"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"a":{}},
           "unevaluatedProperties":false})",
       {R"({"a":1})"},
       {R"({"b":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"unevaluatedProperties":{"$ref":"#"}})",
       {R"({"a":1,"b":{"a":2,"c":{}}})"},
       {R"({"b":{"a":null}})"}},
  };
  check(cases);
}

TEST(JsonSchema, LengthsBesideAPatternAreNarrowed) {
  const std::string pattern = R"(^arn:[a-z]{0,20}:[a-z0-9]{0,20}:[^:]*:[a-z]+/[^/]*$)",
                    start = "\"arn:a:b:c:d/";
  const std::string schema = fmt::format(R"({{"type":"string","pattern":"{}","maxLength":20000}})", pattern);
  const auto grammar = compile(schema);
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(accepts(grammar, start + std::string(90, 'x') + "\""));
  EXPECT_FALSE(accepts(grammar, start + std::string(20000, 'x') + "\""));
  EXPECT_FALSE(accepts(grammar, start + "x/\""));
}

}  // namespace
}  // namespace octavo::grammar
