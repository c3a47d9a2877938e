#include "grammar/schema_keywords.h"

#include <gtest/gtest.h>

#include "grammar/json_schema_cases.h"
#include "grammar/schema_references.h"
#include "grammar/string_format.h"
#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

using testing::accepts;
using testing::Case;
using testing::check;

TEST(SchemaKeywords, UnknownOnesAreAnnotations) {
  const Case cases[] = {
      {R"({"type":"integer","_format":"x","self":{"a":1},"readonly":true,"links":[],"maxlength":3,"not":{"name":1,"minimum":5}})",
       {"4"},
       {"5", R"("a")"}},
      {R"({"type":"string","format":"made-up"})", {R"("anything")"}, {"1"}},
      {R"({"type":"string","not":{"format":"made-up","maxLength":1}})", {R"("ab")"}, {R"("a")"}},
      {R"({"type":"string","format":"password"})", {R"("x")"}, {"1"}},
      {R"({"type":"integer","nullable":true})", {"1", "null"}, {R"("a")"}},
      {R"({"type":"string","enum":["a"],"nullable":true})", {R"("a")"}, {"null"}},
      {R"({"oneOf":[{"type":"integer","discriminator":1},{"type":"string","example":"x"}]})",
       {"1", R"("a")"},
       {"null"}},
  };
  check(cases);
}

TEST(SchemaKeywords, UnknownOnesAreRefusedOnRequest) {
  JsonOptions options;
  options.refuse_unknown = true;
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"properties":{"a":{"typ":"object"}}})",
       "'typ' at #/properties/a/typ: keyword 'typ' is not known; did you mean 'type'?"},
      {R"({"maxlength":1})", "did you mean 'maxLength'?"},
      {R"({"format":"datetime"})", "did you mean 'date-time'?"},
      {R"({"format":"made-up"})", "format 'made-up' is not known"},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","const":1})", "'const' is not known"},
  };
  for (const auto& [schema, part] : cases) {
    const auto grammar = json_schema_grammar(schema, options);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_NE(grammar.error().message.find(part), std::string::npos) << grammar.error().message;
  }
  EXPECT_TRUE(
      json_schema_grammar(R"({"title":"t","x-a":1,"example":1,"format":"int64","default":3})", options));
}

TEST(SchemaKeywords, NearMisses) {
  EXPECT_EQ(likely_constraint("maxlength"), "maxLength");
  EXPECT_EQ(likely_constraint("requierd"), "required");
  EXPECT_EQ(likely_constraint("require"), "required");
  EXPECT_EQ(likely_constraint("item"), "items");
  for (const std::string_view other : {"id", "name", "links", "version", "self", "strict", "in", "form", ""})
    EXPECT_EQ(likely_constraint(other), std::nullopt) << other;
  EXPECT_EQ(likely_format("DateTime"), "date-time");
  EXPECT_EQ(likely_format("color"), std::nullopt);
}

TEST(SchemaKeywords, Dialects) {
  const Case cases[] = {
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":3,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false})",
       {"4", "5"},
       {"3", "6"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","not":{"minimum":3,"exclusiveMinimum":true}})",
       {"3"},
       {"4"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","if":{},"then":false,"const":7})",
       {"1"},
       {}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"integer","if":{"minimum":5},"then":{"maximum":6}})",
       {"1", "6"},
       {"7"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/x","maximum":5,"definitions":{"x":{"type":"integer"}}})",
       {"7"},
       {"null"}},
      {R"({"$schema":"https://json-schema.org/draft/2019-09/schema","$ref":"#/$defs/x","maximum":5,"$defs":{"x":{"type":"integer"}}})",
       {"5"},
       {"7"}},
      {R"({"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"next":{"$recursiveRef":"#"}}})",
       {R"({"next":{"next":{}}})"},
       {R"({"next":1})"}},
      {R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$dynamicAnchor":"node","type":"object","properties":{"next":{"$dynamicRef":"#node"}}})",
       {R"({"next":{"next":{}}})"},
       {R"({"next":1})"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"object","dependencies":{"a":["b"],"c":{"required":["b"]}},"properties":{"a":{},"b":{},"c":{}}})",
       {R"({"a":1,"b":2})", R"({"b":1,"c":1})"},
       {R"({"a":1})", R"({"c":1})"}},
  };
  check(cases);
}

TEST(SchemaKeywords, References) {
  const Case cases[] = {
      {R"({"$id":"https://example.com/root.json","$ref":"item.json#/$defs/n","$defs":{"item":{"$id":"item.json","$defs":{"n":{"type":"integer"}}}}})",
       {"1"},
       {"null"}},
      {R"({"$id":"https://example.com/a/root.json","$ref":"/b/x","$defs":{"x":{"$id":"../b/x","$ref":"#here","$defs":{"y":{"$anchor":"here","type":"null"}}}}})",
       {"null"},
       {"1"}},
      {R"({"$id":"https://example.com/root.json","properties":{"a":{"$ref":"https://example.com/root.json#/$defs/a"}},"$defs":{"a":{"type":"null"}}})",
       {R"({"a":null})"},
       {R"({"a":1})"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#leaf","definitions":{"x":{"$id":"#leaf","type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","id":"http://jsonschema.net","properties":{"a":{"id":"/a","$ref":"#/definitions/x"},"b":{"id":"/b","items":{"$ref":"#/definitions/x"}}},"definitions":{"x":{"type":"null"}}})",
       {R"({"a":null,"b":[null]})"},
       {R"({"a":1})", R"({"b":[1]})"}},
      // The reader copies the schema of unevaluatedProperties and unevaluatedItems. References in the copy
      // must work below a nested $id.
      {R"({"$ref":"sub/x","$defs":{"x":{"$id":"sub/x","properties":{"a":{}},"unevaluatedProperties":{"$ref":"y"}},"y":{"$id":"sub/y","type":"null"}}})",
       {R"({"a":1,"b":null})"},
       {R"({"b":1})"}},
      {R"({"$id":"http://a/b","$ref":"sub/x","$defs":{"x":{"$id":"sub/x","prefixItems":[{}],"contains":{"$ref":"y"},"unevaluatedItems":{"$ref":"z"}},
           "y":{"$id":"sub/y","type":"null"},"z":{"$id":"sub/z","type":"boolean"}}})",
       {"[1,true,null]", "[null,true]"},
       {"[1,true]", "[null,1]"}},
      {R"({"$ref":"#/$defs/a%25b","$defs":{"a%b":{"type":"null"}},"enum":[{"$id":"urn:x"},null]})",
       {"null"},
       {"1"}},
  };
  check(cases);
  EXPECT_EQ(resolved_uri("http://a/b/c/d;p?q", "../g"), "http://a/b/g");
  EXPECT_EQ(resolved_uri("http://a/b/c/d", "g/./h/../i"), "http://a/b/c/g/i");
  EXPECT_EQ(resolved_uri("http://a/b", "//h/x"), "http://h/x");
  EXPECT_EQ(resolved_uri("http://a", "x"), "http://a/x");
  EXPECT_EQ(resolved_uri("urn:a", "urn:b"), "urn:b");
  EXPECT_EQ(resolved_uri("", "x.json"), "x.json");
  for (const std::string_view schema :
       {R"({"$id":"http://a/b","$ref":"other.json"})", R"({"$ref":"#nowhere"})", R"({"$ref":"#/a%zz"})",
        R"({"$ref":1})",
        R"({"$dynamicRef":"#n","$defs":{"a":{"$dynamicAnchor":"n"},"b":{"$id":"b","$dynamicAnchor":"n"}}})"})
    EXPECT_FALSE(json_schema_grammar(schema)) << schema;
}

// If goals were ordered by memory address, the grammar would differ from run to run.
TEST(SchemaKeywords, TheSameSchemaIsTheSameGrammar) {
  constexpr std::string_view kSchema =
      R"({"type":"object","properties":{"v":{"type":"object"}},"required":["v"],
          "allOf":[{"properties":{"v":{"$ref":"#/$defs/a"}}},{"properties":{"v":{"$ref":"#/$defs/b"}}}],
          "$defs":{"b":{"properties":{"b":{"type":"integer"}},"required":["b"]},"a":{"properties":{"a":{"type":"integer"}},"required":["a"]}}})";
  std::vector<std::unique_ptr<char[]>> held;
  for (std::size_t round = 0; round < 60; ++round) {
    // Frees blocks of the sizes that parsing needs, in a different order each time, so that addresses differ.
    for (std::size_t i = 0; i < 40; ++i)
      held.push_back(std::make_unique<char[]>(32 + (i * 7 + round * 13) % 37 * 32));
    for (std::size_t i = held.size() % 3; i < held.size(); i += 3) held[i].reset();
    const auto grammar = testing::compiled(json_schema_grammar(kSchema, {.any_order = false}), kSchema);
    ASSERT_TRUE(grammar);
    EXPECT_TRUE(accepts(grammar, R"({"v":{"a":1,"b":2}})")) << round;
    EXPECT_FALSE(accepts(grammar, R"({"v":{"b":2,"a":1}})")) << round;
  }
}

TEST(SchemaKeywords, Formats) {
  struct Text {
    std::string_view format, yes, no;
  };
  const Text texts[] = {
      {"email", "john.q.public@example.com", "john..public@example.com"},
      {"email", "a@mail.cs.dept.uni.edu", "a@-b.edu"},
      {"email", "m4.van.dijk@vu.nl", "@vu.nl"},
      {"idn-email", "jörg@bücher.de", "jörg"},
      {"hostname", "ec2-1-2-3-4.eu-west-1.compute.amazonaws.com", "a..b"},
      {"idn-hostname", "bücher.例子", "-a"},
      {"uri", "file:///path", "/path"},
      {"uri", "https://user:pw@example.com/", "https://exa mple.com/"},
      {"uri", "http://[::1]/x", "http://[::1/x"},
      {"uri", "urn:isbn:123", "http://a/%z0"},
      {"uri-reference", "../a/b?c#d", "a b"},
      {"uri-reference", "", "a\\b"},
      {"iri", "http://bücher.de/ü", "bücher"},
      {"iri-reference", "ü#x", "ü x"},
      {"uri-template", "/a/{id}{?x,y*}", "/a/{id"},
      {"regex", "^[a-z]+(foo|(?:b|c){0,3})?$", "(a"},
      {"regex", "^[a-zA-Z0-9_]{3,16}x{2,2}y{12,17}z{8,120}$", "a{3,2}"},
      {"duration", "P1DT2H", "P"},
      {"json-pointer", "/a/~0b", "/a~2"},
  };
  for (const Text& t : texts) {
    EXPECT_TRUE(matches(format_automaton(t.format), t.yes)) << t.format << " " << t.yes;
    EXPECT_FALSE(matches(format_automaton(t.format), t.no)) << t.format << " " << t.no;
  }
}

TEST(SchemaKeywords, AddressesOfALength) {
  constexpr std::string_view kSchema = R"({"type":"string","format":"uri","minLength":1,"maxLength":2083})";
  const auto grammar = testing::compiled(json_schema_grammar(kSchema), kSchema);
  ASSERT_TRUE(grammar);
  EXPECT_LT(grammar->state_count(), 2000u);
  for (const std::string_view yes :
       {"https://example.com/a/b?c=%20d#e", "mailto:a@b.c", "file:///x", "http://[::1]:80"})
    EXPECT_TRUE(accepts(grammar, fmt::format("\"{}\"", yes))) << yes;
  EXPECT_TRUE(accepts(grammar, fmt::format("\"http://a/{}\"", std::string(500, 'a'))));
  for (const std::string_view no : {"", "a", "http://a b", "http://a#b#c"})
    EXPECT_FALSE(accepts(grammar, fmt::format("\"{}\"", no))) << no;
  EXPECT_FALSE(accepts(grammar, fmt::format("\"http://a/{}\"", std::string(2083, 'a'))));
  constexpr std::string_view kReference = R"({"type":"string","format":"uri-reference","maxLength":500})";
  const auto reference = testing::compiled(json_schema_grammar(kReference), kReference);
  for (const std::string_view yes : {"https://a/b", "../x?y#z", "#f", "?q", "/", "//h/p"})
    EXPECT_TRUE(accepts(reference, fmt::format("\"{}\"", yes))) << yes;
  EXPECT_FALSE(accepts(reference, R"("a:b c")"));
}

TEST(JsonSchema, PatternsOfManyCategories) {
  const Case cases[] = {
      {R"({"type":"string","pattern":"^[\\p{L}\\p{M}\\p{Zs}.'-]{1,64}$"})",
       {R"("Élodie")", R"("王 小明")", R"("O'Neil-Smith")"},
       {R"("")", R"("a1")"}},
      {R"({"type":"string","pattern":"^\\p{L}[\\p{L}\\p{N}_]{2,200}$","maxLength":4})",
       {R"("éa1")", R"("abcd")"},
       {R"("ab")", R"("1ab")", R"("abcde")"}},
      {R"_({"type":"string","pattern":"^(a|b)*a(a|b){30}$"})_",
       {R"("baabababababababababababababababb")"},
       {R"("ab")", R"("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")"}},
  };
  check(cases);
}

}  // namespace
}  // namespace octavo::grammar
