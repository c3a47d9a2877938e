#include "grammar/json_schema_cases.h"

namespace octavo::grammar {
namespace {

using testing::accepts;
using testing::byte_vocabulary;
using testing::Case;
using testing::check;
using testing::compile;

TEST(JsonSchema, TypesAndValues) {
  const Case cases[] = {
      {"true",
       {"1", "null", R"({"a": [1, {"b": "c"}]})", R"("\u00e9\n")", "-1.5e+3", "[]", "[[ ]]"},
       {"", "{", "01", "nul", R"("\ud800")", "[1,]", "'a'", " 1"}},
      {"{}", {"1", "{}"}, {"x"}},
      {R"({"type":"null"})", {"null"}, {"0", "true"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"null", "True"}},
      {R"({"type":"integer"})",
       {"0", "-17", "-0", "123456789012345678901234567890"},
       {"1.5", "01", "1e3", "+1"}},
      {R"({"type":"number"})", {"0", "-17.25", "1E5", "1e-10"}, {".5", "1.", "1e", "NaN"}},
      {R"({"type":["string","null"]})", {R"("a")", "null", R"("")"}, {"1"}},
      {R"({"enum":["a",1,null,{"b":[1]},"q\"\n"]})",
       {R"("a")", "1", "null", R"({"b":[1]})", R"("q\"\n")"},
       {R"("b")", "2"}},
      {R"({"const":"x\u00e9"})", {"\"x\xC3\xA9\""}, {R"("x")"}},
      {R"({"type":"integer","enum":[1,2.5,"3",4.0]})", {"1", "4.0", "4"}, {"2.5", R"("3")", "4.00"}},
      {R"({"enum":[1e3,-2.50]})", {"1e3", "1000", "-2.50", "-2.5"}, {"1", "2.5"}},
      {R"({"enum":[[1,2],{"a":1,"b":[true,"x"]},{}]})",
       {"[1, 2]", "[1,2]", R"({"a": 1, "b": [true, "x"]})", R"({"b":[true,"x"],"a":1})", "{}",
        "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    \"x\"\n  ]\n}"},
       {"[2,1]", R"({"a":1})", R"({"a":1,"a":1})", "[1]", R"({"a":1,"b":[true,"x"],"a":1})"}},
      {R"({"type":"array","uniqueItems":true,"minItems":2,"items":{"enum":[[1,2],[2,1]]}})",
       {"[[1, 2], [2, 1]]", "[[2,1],[1,2]]"},
       {"[[1,2]]", "[[1,2],[1,2]]"}},
      {R"({"type":"array","uniqueItems":true,"maxItems":2,"items":{"enum":["a",2.0]}})",
       {R"(["a", 2])", "[]"},
       {"[2,2.0]"}},
      {R"({"enum":["aa","b","ccc"],"minLength":2})", {R"("aa")", R"("ccc")"}, {R"("b")"}},
  };
  check(cases);
}

// After any prefix of a number, the number can end at once or after a few digits.
TEST(JsonSchema, BoundedNumbersDoNotTrap) {
  struct Bounds {
    std::string_view schema;
    std::vector<std::string_view> numbers, no_beginnings;
  };
  const Bounds cases[] = {
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "1", "0.7", "0.70", "1.0", "1.00", "0.333333333333333", "1e-05"},
       {"7", "-", "1.1", "9e", "1.0000000000", "0.1000000000000000000000"}},
      {R"({"type":"number","minimum":0,"maximum":100})",
       {"7", "70.5", "100", "100.00", "7e-1", "2.5e-05"},
       {"-", "101"}},
      {R"({"type":"number","minimum":-1,"maximum":1})", {"-0.5", "-1", "1", "-1e-05"}, {"-7", "2", "3e"}},
      {R"({"type":"number","maximum":0.5})", {"-7", "0.5", "0.50", "-2e5"}, {"7", "1", "0.5000000000"}},
      {R"({"type":"number","exclusiveMinimum":0})", {"0.00000001", "7", "7e-5"}, {"-", "0.000000000"}},
      {R"({"type":"integer","minimum":0,"maximum":1})", {"0", "1"}, {"-", "10", "2", "1."}},
      {R"({"type":"number","minimum":1e-9,"maximum":1e-3})", {"7e-5", "0.0005", "1e-9"}, {"-", "0.002"}},
      {R"({"type":"number","minimum":0.00001,"maximum":0.001})", {"0.0005"}, {"7", "1", "9e"}},
      {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
       {"0.5", "0.50", "0.00001"},
       {"1", "-", "0.000000000"}},
      {R"({"type":"number","exclusiveMinimum":-1,"maximum":0})",
       {"-0.5", "0", "0.0", "-0", "-0.0"},
       {"-1", "0.0000000000"}},
      {R"({"type":"number","minimum":-90,"maximum":-0.5})",
       {"-0.5", "-12.25", "-90"},
       {"0", "9", "-91", "-90.1"}},
      {R"({"type":"number","minimum":0,"maximum":0})", {"0", "0.0"}, {"-", "0.0000000000", "0e"}},
      {R"({"type":"number","minimum":0,"maximum":1,"multipleOf":0.25})",
       {"0.25", "0.5", "0.50", "1"},
       {"0.3", "0.255", "2"}},
      {R"({"type":"number","multipleOf":0.5})", {"0.5", "12.50", "7"}, {"0.3", "1.0000000000"}},
      {R"({"type":"integer","multipleOf":7})", {"14", "154", "999999999992"}, {"1500000000000", "1.0"}},
      {R"({"type":"integer","multipleOf":7,"minimum":1000000000000})", {"1000000000006"}, {"0"}},
      {R"({"type":"integer","minimum":18446744073709551616,"maximum":18446744073709551619})",
       {"18446744073709551616", "18446744073709551619"},
       {"2", "18446744073709551615", "184467440737095516160"}},
      {R"({"type":"integer","maximum":-9223372036854775809})", {"-9223372036854775809"}, {"9", "0"}},
      {R"({"type":"number","not":{"type":"integer"}})", {"1.5", "0.001", "2.0000000010"}, {"1.0000000000"}},
      {R"({"type":"number","not":{"const":1}})", {"1.5", "1.000000001", "2"}, {"1.0000000000"}}};
  for (const Bounds& c : cases) {
    const auto grammar = compile(c.schema);
    ASSERT_TRUE(grammar);
    for (const auto number : c.numbers) EXPECT_TRUE(accepts(grammar, number)) << c.schema << " " << number;
    for (const auto beginning : c.no_beginnings) {
      Matcher matcher(grammar);
      EXPECT_FALSE(testing::feed(matcher, beginning)) << c.schema << " " << beginning;
    }
  }
}

TEST(JsonSchema, Numbers) {
  const Case cases[] = {
      {R"({"type":"integer","minimum":-5,"maximum":120})",
       {"-5", "0", "-0", "7", "99", "100", "120"},
       {"-6", "121", "1000", "-10", "00"}},
      {R"({"type":"integer","exclusiveMinimum":9,"exclusiveMaximum":101})",
       {"10", "99", "100"},
       {"9", "101", "8"}},
      {R"({"type":"integer","minimum":0.5})", {"1", "10"}, {"0", "-1"}},
      {R"({"type":"integer","maximum":-3})", {"-3", "-100"}, {"-2", "0", "3"}},
      {R"({"type":"number","minimum":0.25,"maximum":1.5})",
       {"0.25", "0.250", "1", "1.5", "1.500", "0.9"},
       {"0.2", "0.249", "1.51", "2", "0"}},
      {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
       {"0.1", "0.0001", "0.999"},
       {"0", "1", "0.0", "1.0"}},
      {R"({"type":"number","minimum":-1.5,"exclusiveMaximum":-0.5})",
       {"-1.5", "-1", "-0.51"},
       {"-0.5", "-1.51", "0", "1"}},
      {R"({"type":"number","minimum":10})", {"10", "10.0", "11.5", "1000"}, {"9.99", "1"}},
      {R"({"type":"integer","multipleOf":7})", {"0", "7", "-14", "700"}, {"1", "8"}},
      {R"({"type":"number","multipleOf":0.05})", {"0", "1", "0.05", "2.1500", "1.10"}, {"0.01", "1.149"}},
      {R"({"type":"integer","multipleOf":5,"minimum":12,"maximum":31})", {"15", "30"}, {"10", "35", "16"}},
      {R"({"type":"number","multipleOf":2})", {"4", "4.0", "10.00"}, {"3", "4.5"}},
      {R"({"type":"integer","minimum":1e2,"maximum":1.2E+2})", {"100", "120"}, {"99", "121"}},
      {R"({"type":"number","minimum":0})",
       {"1e-05", "1.5E-7", "2e+16", "1e9", "0.0", "3"},
       {"-1e-05", "0e-05", "10e-05", "1e-", "1e-100"}},
      {R"({"type":"number","exclusiveMinimum":0,"maximum":1})",
       {"1e-05", "1.0e-3", "0.00000001"},
       {"1e0", "1e+5", "-1e-5", "9.9e-1", "0.00000000000000000001"}},
      {R"({"type":"number","minimum":0.001,"maximum":250})",
       {"1e-3", "9.99e1", "2.5e1"},
       {"1e-4", "1e2", "3e2"}},
      {R"({"type":"number","minimum":-2,"maximum":5})", {"-1e-05", "1e-05", "1e-1"}, {"-1e1", "1e1"}},
      {R"({"type":"number","not":{"type":"integer"}})", {"1.5", "0.10"}, {"1", "1.0", "1.00"}},
  };
  check(cases);
}

TEST(JsonSchema, Strings) {
  const Case cases[] = {
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", "\"\xC3\xA9\xF0\x9F\x98\x80\"", R"("\n\"c")", R"("\ud83d\ude00x")"},
       {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}},
      {R"({"type":"string","maxLength":2000})", {R"("")", R"("abc")"}, {"1"}},
      {R"({"type":"string","pattern":"^[a-z]+\\d$"})", {R"("ab1")"}, {R"("ab")", R"("1")", R"("Ab1")"}},
      {R"({"type":"string","pattern":"b"})", {R"("abc")", R"("b")", R"("\nb")"}, {R"("ac")"}},
      {R"({"type":"string","pattern":"^\"\\\\\n$"})", {R"("\"\\\n")", R"("\"\\\u000a")"}, {R"(""\")"}},
      {R"({"type":"string","pattern":"^a*$","minLength":2,"maxLength":4})",
       {R"("aa")", R"("aaaa")"},
       {R"("a")", R"("aaaaa")", R"("ab")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-29")", R"("1999-12-31")"},
       {R"("2023-02-29")", R"("2024-13-01")", R"("24-01-01")"}},
      {R"({"type":"string","format":"date-time"})",
       {R"("2024-02-29T23:59:59Z")", R"("2024-01-01T00:00:00.5+01:30")"},
       {R"("2024-01-01")", R"("2024-01-01T24:00:00Z")"}},
      {R"({"type":"string","format":"uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123e4567")"}},
      {R"({"type":"string","format":"ipv4"})", {R"("192.168.0.255")"}, {R"("256.1.1.1")", R"("01.1.1.1")"}},
      {R"({"type":"string","format":"ipv6"})",
       {R"("::")", R"("::1")", R"("1:2:3:4:5:6:7:8")", R"("::ffff:1.2.3.4")"},
       {R"("1:2")", R"(":::")"}},
      {R"({"type":"string","format":"email"})",
       {R"("joe.b@example.com")"},
       {R"("joe")", R"("a@@b")", R"(".a@b.c")"}},
      {R"({"type":"string","not":{"enum":["a","b"]}})", {R"("c")", R"("ab")", R"("")"}, {R"("a")", R"("b")"}},
      {R"({"type":"string","not":{"pattern":"^a"}})", {R"("ba")"}, {R"("ab")"}},
      // Lookaheads at the beginning, whose automata can be combined.
      {R"_({"type":"string","pattern":"^(?!aws:)[a-z:]+$"})_",
       {R"("a:b")", R"("aw")"},
       {R"("aws:")", R"("aws:x")", R"("")"}},
      {R"_({"type":"string","pattern":"^(?=.*[0-9])(?!no|(is|it)$)[a-z0-9]*$","maxLength":4})_",
       {R"("a1")", R"("1it")"},
       {R"("ab")", R"("no1")", R"("a1234")"}},
      {R"_({"type":"object","patternProperties":{"^(?![xy]|[)]).$":{"type":"null"}},"additionalProperties":false})_",
       {R"({"a":null})", "{}"},
       {R"({"x":null})", R"_({")":null})_", R"({"a":1})"}},
  };
  check(cases);
}

TEST(JsonSchema, Objects) {
  const Case cases[] = {
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{"type":"null"}},"required":["b"]})",
       {R"({"a":1,"b":true,"c":null})", R"({"b":false})", R"({ "b": true, "c": null })",
        R"({"b":true,"a":1})", "{\n  \"a\": 1,\n  \"b\": true\n}"},
       {R"({})", R"({"a":1})", R"({"b":true,"d":1})", R"({"b":true,})", R"({"b" :true})", R"({"b":  true})",
        R"({"b":true ,"c":1})", "{\n\n\"b\":true}", R"({"b":true,"b":true})", R"({,"b":true})"}},
      {R"({"type":"object"})", {"{}", R"({"x":1,"y":{}})"}, {"[]"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}})",
       {R"({"a":1,"b":"x","aa":"y"})", R"({"b":"x"})", "{}"},
       {R"({"a":"x"})", R"({"b":1})", R"({"\u0061":"x"})"}},
      {R"({"type":"object","additionalProperties":false})", {"{}", "{ }"}, {R"({"a":1})"}},
      {R"({"type":"object","patternProperties":{"^n_":{"type":"integer"},"_s$":{"type":"string"}}})",
       {R"({"n_a":1})", R"({"x_s":"q"})"},
       {R"({"n_a":"1"})", R"({"other":1})", R"({"n_s":"1"})", R"({"n_s":1})"}},
      {R"({"type":"object","properties":{"n_a":{"minimum":5}},"patternProperties":{"^n_":{"type":"integer"}},"additionalProperties":{"type":"null"}})",
       {R"({"n_a":5,"n_b":1,"z":null})"},
       {R"({"n_a":4})", R"({"n_b":null})", R"({"z":1})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"}})",
       {R"({"abc":1})", "{}"},
       {R"({"A":1})", R"({"":1})"}},
      {R"({"type":"object","propertyNames":{"enum":["x","y"]},"additionalProperties":{"type":"integer"}})",
       {R"({"x":1})"},
       {R"({"z":1})"}},
      {R"({"type":"object","required":["k"],"additionalProperties":{"type":"integer"}})",
       {R"({"k":1})", R"({"k":1,"l":2})"},
       {"{}", R"({"l":2})", R"({"k":"a"})"}},
      {R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":2})",
       {R"({"a":1,"c":2})", R"({"a":1,"b":1,"c":2})"},
       {R"({"a":1})", "{}"}},
      {R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"maxProperties":1})",
       {R"({"a":1})", R"({"c":1})", "{}"},
       {R"({"a":1,"b":1})"}},
      {R"({"type":"object","minProperties":1})", {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}"}},
      {R"({"type":"object","minProperties":2})",
       {R"({"a":1,"b":2})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"a":1})"}},
      {R"({"type":"object","properties":{"a":{}},"additionalProperties":true,"minProperties":3,"maxProperties":4})",
       {R"({"a":1,"b":2,"c":3})", R"({"x":1,"b":2,"c":3,"d":4})"},
       {R"({"a":1,"b":2})", R"({"a":1,"b":2,"c":3,"d":4,"e":5})"}},
      {R"({"type":"object","maxProperties":2})", {"{}", R"({"a":1,"b":2})"}, {R"({"a":1,"b":2,"c":3})"}},
      {R"({"type":"object","properties":{"a":false,"b":true}})", {R"({"b":1})", "{}"}, {R"({"a":1})"}},
      {R"({"type":"object","properties":{"a\"b":{"type":"null"}},"required":["a\"b"]})",
       {R"({"a\"b":null})"},
       {"{}"}},
      {R"({"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}})",
       {R"({"a":1,"b":2})", R"({"b":2})", "{}"},
       {R"({"a":1})"}},
      {R"({"type":"object","properties":{"a":{},"b":{}},"dependentSchemas":{"a":{"required":["b"]}}})",
       {R"({"a":1,"b":2})", R"({"b":2})"},
       {R"({"a":1})"}},
  };
  check(cases);
  JsonOptions compact;
  compact.whitespace = JsonOptions::Whitespace::none;
  const Case tight[] = {{R"({"type":"object","properties":{"a":{"type":"array"}}})",
                         {R"({"a":[1,2]})", "{}"},
                         {R"({"a": [1]})", R"({"a":[1, 2]})", "{ }"}}};
  check(tight, compact);
  JsonOptions open;
  open.strict = false;
  const Case loose[] = {{R"({"properties":{"a":{"type":"integer"}},"type":"object"})",
                         {R"({"a":1,"b":true})", R"({"b":1})"},
                         {R"({"a":"x"})"}}};
  check(loose, open);
}

TEST(JsonSchema, Arrays) {
  const Case cases[] = {
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1, 2,3]"},
       {"[]", "[1,2,3,4]", "[true]", "[1,]"}},
      {R"({"type":"array"})", {"[]", "[1,[],{}]"}, {"{}"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"}})",
       {"[]", "[1]", R"([1,"a"])", R"([1,"a",null,null])"},
       {R"(["a"])", R"([1,"a",1])"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2})",
       {R"([1,"a"])"},
       {"[1]", R"([1,"a",null])"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"integer"}],"additionalItems":false})",
       {"[]", "[1]"},
       {"[1,2]"}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1000})", {}, {"[]", "[1,2]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5}})",
       {"[5]", "[1,7,2]"},
       {"[]", "[1,2]", "[\"a\"]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"minContains":2})",
       {"[5,6]", "[1,7,2,9,9]"},
       {"[]", "[5]", "[5,1]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"maxContains":2})",
       {"[5]", "[1,7,2,9,1]"},
       {"[]", "[1]", "[5,6,7]", "[5,1,5,1,5]"}},
      {R"({"type":"array","items":{"type":"integer"},"contains":{"const":1},"minContains":0,"maxContains":1,"maxItems":3})",
       {"[]", "[1]", "[2,1,2]"},
       {"[1,1]", "[2,2,2,2]"}},
      {R"({"type":"array","contains":{"type":"string"},"minContains":1,"maxContains":1,"minItems":2})",
       {R"(["a",1])", R"([1,null,"a"])"},
       {R"(["a"])", R"(["a","b"])", "[1,2]"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","contains":{"const":1},"maxContains":1,"type":"array"})",
       {"[1,1]"},
       {"[2]"}},
      {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"type":"array","uniqueItems":true,"maxItems":1})", {"[1]"}, {"[1,1]"}},
      {R"({"type":"array","uniqueItems":true,"minItems":1,"maxItems":2,"items":{"enum":["a","b",1,1.0]}})",
       {R"(["a"])", R"(["b","a"])", R"([1, "a"])"},
       {"[]", R"(["a","a"])", R"(["a","b",1])", R"([1,1])", R"([1,1.0])"}},
      {R"({"type":"array","uniqueItems":true,"items":{"anyOf":[{"type":"boolean"},{"const":true},{"type":"null"}]}})",
       {"[]", "[true,null,false]"},
       {"[true,true]", "[null,false,null]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})",
       {R"(["a","b"])", "[]", R"(["a", "", "aa"])"},
       {"[1]", R"(["a","a"])", R"(["a", "b", "\u0061"])", R"(["",""])"}},
      {R"({"type":"array","uniqueItems":true})",
       {R"([1,2,12,"1",true,null,[1],{"a":1}])", "[[],[[]]]", R"([[1,1],[1]])"},
       {"[1,1]", "[1,1.0]", "[10,1e1]", "[true,null,true]", R"([{"a":1,"b":2},{"b":2.0,"a":1}])", "[[],[]]",
        "[1, 2, 1 ]", R"([[1,2],[1, 2]])"}},
      {R"({"properties":{"x":{"type":"array","uniqueItems":true,"items":{"type":"integer"}},"y":{"type":"array"}}})",
       {R"({"x":[1,2],"y":[1,1]})", R"({"x":[],"y":["[1,1]"]})"},
       {R"({"x":[1,1]})", R"({"x":[3,12,3],"y":[]})"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"array","uniqueItems":true,"items":{"type":"integer"}}})",
       {"[[1],[2],[1,2]]"},
       {"[[1,1]]", "[[1],[2],[1]]"}},
      {R"({"$defs":{"t":{"type":"array","uniqueItems":true,"items":{"type":["string","integer"]}}},
           "type":"array","items":{"$ref":"#/$defs/t"}})",
       {R"([["a",1],["a",1]])"},
       {R"([["a",1,"a"]])"}},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":[1,2,3,4,5,6,7,8,9]}})",
       {"[]", "[1,9]", "[9,1]", "[3]", "[1,2,3,4,5,6,7,8,9]"},
       {"[1,2,3,4,5,6,7,8,9,1]", "[10]", "[1,1]", "[3,9,3]", "[1,]"}},
      {R"({"type":"array","uniqueItems":true,"minItems":2,"maxItems":3,"items":{"enum":["a","ab","abc","b","c","d","e","f","g"]}})",
       {R"(["a","ab"])", R"(["ab","a"])", R"(["b","c","g"])"},
       {R"(["a"])", R"(["a","ab","b","c"])", "[]", R"(["ab","ab"])"}},
      {R"({"type":"array","uniqueItems":true,"prefixItems":[{"type":"string","minLength":3}],"items":{"enum":[""]}})",
       {R"(["abc",""])", R"(["abc"])"},
       {R"(["abc","",""])", R"(["abc","",)"}},
      {R"({"type":"array","uniqueItems":true,"prefixItems":[{"type":"null"}],"items":{"type":"boolean"}})",
       {"[null,true]"},
       {"[true]"}},
  };
  check(cases);
}

TEST(JsonSchema, RefusesUniqueItemsOnRequest) {
  JsonOptions options;
  options.refuse_unique = true;
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"type":"array","uniqueItems":true})", "#/uniqueItems"},
      {R"({"properties":{"a":{"items":{"uniqueItems":true}}}})", "#/properties/a/items/uniqueItems"},
      {R"({"items":{"type":"integer"},"uniqueItems":true})", "lists at most"},
      {R"({"items":{"type":"integer"},"uniqueItems":true})", "at most 256"},
      {R"({"prefixItems":[{"const":1}],"uniqueItems":true})", "prefixItems"},
  };
  for (const auto& [schema, reason] : cases) {
    const auto grammar = json_schema_grammar(schema, options);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_NE(grammar.error().message.find(reason), std::string::npos) << grammar.error().message;
  }
  EXPECT_TRUE(json_schema_grammar(R"({"items":{"enum":[1,2]},"uniqueItems":true})", options));
}

TEST(JsonSchema, RefusesWhatItCannotEnforce) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"allOf":[{"unevaluatedProperties":false}],"properties":{"a":{}}})",
       "#/allOf/0/unevaluatedProperties"},
      {R"({"not":{"unevaluatedProperties":false}})", "negated"},
      {R"({"unevaluatedProperties":false,"not":{"not":{"properties":{"a":{}}}}})", "together with 'not'"},
      {R"({"type":"objekt"})", "#/type"},
      {R"({"type":[]})", "#/type"},
      {R"({"$ref":"#"})", "itself"},
      {R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}})",
       "itself"},
      {R"({"$ref":"http://example.com/x"})", "another document"},
      {R"({"$ref":"#/$defs/none"})", "nowhere"},
      {R"_({"pattern":"(?=a)"})_", "lookaround"},
      {R"({"minLength":-1})", "#/minLength"},
      {R"({"multipleOf":0})", "#/multipleOf"},
      {R"({"multipleOf":123457})", "#/multipleOf"},
      {R"({"maxContains":201,"contains":{"minimum":5}})", "counted items"},
      {R"({"maxContains":2,"contains":{"additionalProperties":false}})", "negated"},
      {R"({"not":{"additionalProperties":false}})", "negated"},
      {R"({"properties":{"a":3}})", "a schema"},
      {R"({"anyOf":[]})", "#/anyOf"},
      {R"({"required":"a"})", "#/required"},
      {R"({"a":1,"a":2})", "twice"},
      {R"({"type":"string")", "line 1, column 17"},
      {"[1]", "must be an object"},
      {"", "line 1, column 1"},
      {"{\"const\":\"\xFF\"}", "UTF-8"},
  };
  for (const auto& [schema, part] : cases) {
    const auto grammar = json_schema_grammar(schema);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_EQ(grammar.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(grammar.error().message.find(part), std::string::npos)
        << schema << ": " << grammar.error().message;
    EXPECT_EQ(grammar.error().field, "json");
  }
}

// Branches with many properties, most of which are equal, as in API descriptions.
TEST(JsonSchema, BranchesThatShareMostProperties) {
  std::string shared;
  for (int i = 0; i < 60; ++i)
    shared += fmt::format("\"property_{}\":{{\"type\":\"string\",\"format\":\"uri\"}},", i);
  std::string branches;
  for (const char kind : {'a', 'b', 'c'})
    branches += fmt::format(
        R"({}{{"type":"object","properties":{{{}"{}":{{"type":"integer"}}}},"required":["property_7","{}"],"additionalProperties":false}})",
        branches.empty() ? "" : ",", shared, kind, kind);
  const auto grammar = compile(fmt::format(R"({{"oneOf":[{}]}})", branches));
  EXPECT_TRUE(accepts(grammar, R"({"property_7":"urn:x","property_50":"urn:y","b":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"property_7":"urn:x","a":1,"b":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"property_7":"urn:x"})"));
}

TEST(JsonSchema, ContradictionsAreRefused) {
  for (const std::string_view schema :
       {"false", R"({"type":"integer","minimum":5,"maximum":4})", R"({"enum":[1],"type":"string"})",
        R"({"not":{}})", R"({"type":"object","required":["a"],"properties":{"a":false}})",
        R"({"type":"string","minLength":3,"maxLength":2})", R"({"type":"array","minItems":3,"maxItems":2})",
        R"({"allOf":[{"type":"string"},{"type":"null"}]})",
        R"({"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}})",
        R"({"type":"object","minProperties":3,"maxProperties":2})"}) {
    const auto grammar = json_schema_grammar(schema);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_NE(grammar.error().message.find("at #"), std::string::npos) << grammar.error().message;
  }
}

TEST(JsonSchema, ManyValuesAndProperties) {
  std::string values;
  for (int i = 0; i < 100'000; ++i) values += fmt::format("{}\"item_{:06}\"", i ? "," : "", i);
  const auto large = compile(fmt::format("{{\"enum\":[{}]}}", values));
  EXPECT_TRUE(accepts(large, "\"item_099999\""));
  EXPECT_FALSE(accepts(large, "\"item_100000\""));
  EXPECT_LT(large->state_count(), 100u);
  std::string properties;
  for (int i = 0; i < 300; ++i)
    properties += fmt::format("{}\"property_{}\":{{\"type\":\"integer\"}}", i ? "," : "", i);
  const auto wide = compile(fmt::format("{{\"type\":\"object\",\"properties\":{{{}}}}}", properties));
  EXPECT_TRUE(accepts(wide, R"({"property_3":1,"property_299":5})"));
  EXPECT_FALSE(accepts(wide, R"({"property_299":1,"property_3":5})"));
}

TEST(JsonSchema, MaskIsWhatAcceptTakes) {
  const auto vocabulary = byte_vocabulary(
      {"{\"",   "\":",    "\": ", "\",", "\", \"", "},",   "}]",       "]}",       "true",     "false,",
       "\"a\"", "\"a\":", "ab",   "abc", " ",      "  ",   "\n  ",     "\n    \"", "12",       "3.",
       ".5",    "e1",     "\\n",  "\\u", "00",     "\\\"", "\xC3\xA9", "\xA9\"",   "null",     "null}",
       "[[",    "[]",     "[1,",  "-1",  "x\",\"", "\"\"", "\":{\"",   "}}",       "\"b\":\"", "q\"}"});
  std::uint64_t seed = 99;
  const auto next = [&] { return seed = seed * 6364136223846793005ull + 1442695040888963407ull, seed >> 33; };
  for (
      const std::string_view schema :
      {"true",
       R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"abc":{"type":"array","items":{"type":"boolean"}}}})",
       R"({"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":"string","maxLength":5}},"additionalProperties":{"type":"null"}})",
       R"_({"type":"array","items":{"anyOf":[{"type":"number","minimum":-12.5},{"type":"string","pattern":"^(ab|x)+$"},{"$ref":"#"}]},"maxItems":3})_",
       R"({"enum":["ab","abc",12,[1,null],{"a":true}]})",
       // Masks that are stored as differences from the mask of arbitrary text.
       R"({"type":"object","properties":{"a":{},"ab":{"type":"null"}},"patternProperties":{"b$":{"type":"integer"}},"additionalProperties":true})",
       R"_({"type":"array","items":{"anyOf":[{"pattern":"\\S","type":"string"},{"type":"string","not":{"enum":["ab","q","\\"]}},{"type":"null"}]}})_",
       R"({"type":"array","items":{"type":"string","minLength":2,"maxLength":60}})"}) {
    const auto compiled = CompiledGrammar::compile(*json_schema_grammar(schema), vocabulary, 256u << 10);
    ASSERT_TRUE(compiled) << schema;
    for (int run = 0; run < 5; ++run) {
      Matcher matcher(*compiled);
      std::vector<TokenId> taken;
      for (int step = 0; step < 60 && !matcher.is_terminated(); ++step) {
        const auto mask = testing::mask_of(matcher, *vocabulary);
        ASSERT_EQ(mask, testing::brute_force_mask(matcher, *vocabulary)) << schema << " after " << step;
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < mask.size(); ++i)
          if (mask[i] && (i < 256 ? next() % 8 == 0 || i == '"' || i == '}' : true))
            allowed.push_back(static_cast<TokenId>(i));
        if (allowed.empty()) continue;
        const std::string forced = matcher.jump_forward();
        const TokenId token = allowed[next() % allowed.size()];
        ASSERT_TRUE(matcher.accept(token));
        const auto text = vocabulary->bytes(token);
        if (!forced.empty()) {
          ASSERT_TRUE(text.starts_with(forced) || forced.starts_with(text)) << forced << " against " << text;
        }
        taken.push_back(token);
        if (next() % 5 == 0) {
          const std::size_t back = next() % std::min<std::size_t>(taken.size() + 1, 4);
          matcher.rollback(back);
          taken.resize(taken.size() - back);
          Matcher replay(*compiled);
          for (const TokenId t : taken) ASSERT_TRUE(replay.accept(t));
          ASSERT_EQ(testing::mask_of(matcher, *vocabulary), testing::mask_of(replay, *vocabulary));
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo::grammar
