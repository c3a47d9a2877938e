// Tests objects with members in any order, and uniqueItems with listed values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "grammar/json_schema.h"
#include "grammar/limits.h"
#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

using testing::accepts;

std::shared_ptr<const CompiledGrammar> compile_schema(std::string_view schema,
                                                      const JsonOptions& options = {}) {
  return testing::compiled(json_schema_grammar(schema, options), schema);
}

std::uint32_t random_index(std::uint64_t& seed, std::size_t n) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<std::uint32_t>((seed >> 33) % n);
}

// Checks all orders of all subsets of the members.
TEST(AnyOrder, EveryOrderOfMembers) {
  const std::vector<std::string> names{"ab", "a", "abc", "zz"};  // the schema does not list the last one
  for (unsigned required = 0; required < 8; ++required)
    for (const auto& [min, max] : {std::pair(0, 9), {2, 9}, {0, 2}, {3, 3}, {0, 0}, {4, 9}})
      for (const bool open : {false, true}) {
        std::string properties, all_required;
        for (std::size_t i = 0; i < 3; ++i) {
          properties += fmt::format(R"({}"{}":{{"const":{}}})", i ? "," : "", names[i], i);
          if (required >> i & 1)
            all_required += fmt::format(R"({}"{}")", all_required.empty() ? "" : ",", names[i]);
        }
        const std::string schema = fmt::format(
            R"({{"type":"object","properties":{{{}}},"required":[{}],"minProperties":{},"maxProperties":{},
                "additionalProperties":{}}})",
            properties, all_required, min, max, open ? R"({"const":3})" : "false");
        // A schema without a valid value is an error.
        const auto compiled = [&]() -> Result<std::shared_ptr<const CompiledGrammar>> {
          TRY(const Grammar grammar, json_schema_grammar(schema));
          return CompiledGrammar::compile(grammar, testing::byte_vocabulary());
        }();
        for (unsigned set = 0; set < 16; ++set) {
          const int count = std::popcount(set);
          const bool valid =
              (set & required) == required && min <= count && count <= max && (open || !(set & 8));
          std::vector<std::size_t> members;
          for (std::size_t i = 0; i < names.size(); ++i)
            if (set >> i & 1) members.push_back(i);
          do {
            std::string text;
            for (const std::size_t i : members)
              text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ", ", names[i], i);
            EXPECT_EQ(compiled && accepts(*compiled, "{" + text + "}"), valid) << schema << "\n  " << text;
          } while (std::ranges::next_permutation(members).found);
        }
      }
}

TEST(AnyOrder, NoListedMemberComesTwice) {
  const auto grammar = compile_schema(
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":true})");
  EXPECT_TRUE(accepts(grammar, R"({"x":1,"a":1,"y":2,"b":3,"z":4})"));
  EXPECT_FALSE(accepts(grammar, R"({"a":1,"b":1,"a":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"x":1,"b":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"a":1,})"));
  EXPECT_FALSE(accepts(grammar, R"({,"a":1})"));
}

TEST(AnyOrder, TheSchemasOrderOnRequest) {
  JsonOptions in_order;
  in_order.any_order = false;
  const auto grammar =
      compile_schema(R"({"type":"object","properties":{"a":{},"b":{}},"required":["b"]})", in_order);
  EXPECT_TRUE(accepts(grammar, R"({"a":1,"b":2})"));
  EXPECT_FALSE(accepts(grammar, R"({"b":1,"a":2})"));
}

// Up to kAnyOrderMax members may have any order. With one more, they must have the schema's order.
TEST(AnyOrder, ManyMembers) {
  for (const std::size_t count : {kAnyOrderMax, kAnyOrderMax + 1}) {
    std::string properties, required, reversed;
    for (std::size_t i = 0; i < count; ++i) {
      properties += fmt::format(R"({}"member_{}":{{"type":"integer"}})", i ? "," : "", i);
      required += fmt::format(R"({}"member_{}")", i ? "," : "", i);
      reversed += fmt::format(R"({}"member_{}":1)", i ? "," : "", count - 1 - i);
    }
    const auto grammar = compile_schema(
        fmt::format(R"({{"type":"object","properties":{{{}}},"required":[{}]}})", properties, required));
    ASSERT_TRUE(grammar);
    EXPECT_EQ(accepts(grammar, "{" + reversed + "}"), count <= kAnyOrderMax);
    EXPECT_FALSE(accepts(grammar, "{" + reversed.substr(0, reversed.rfind(',')) + "}"));
  }
}

TEST(AnyOrder, ListedItemsThatDiffer) {
  std::string values;
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) {
    texts.push_back(i % 2 ? fmt::format("{}", i) : fmt::format(R"("v{}")", i));
    values += (i ? "," : "") + texts.back();
  }
  const auto grammar = compile_schema(fmt::format(
      R"({{"type":"array","uniqueItems":true,"items":{{"enum":[{}]}},"minItems":2,"maxItems":39}})", values));
  std::ranges::reverse(texts);
  const auto listed = [&](std::size_t count) {
    return fmt::format("[{}]", fmt::join(std::span(texts).first(count), ", "));
  };
  EXPECT_TRUE(accepts(grammar, listed(39)));
  EXPECT_TRUE(accepts(grammar, listed(2)));
  EXPECT_FALSE(accepts(grammar, listed(40)));
  EXPECT_FALSE(accepts(grammar, listed(1)));
  EXPECT_FALSE(accepts(grammar, fmt::format("[{0},{1},{0}]", texts[0], texts[1])));
}

TEST(AnyOrder, MembersOfConstants) {
  const auto grammar = compile_schema(R"({"enum":[{"a":1,"b":[{"c":2,"d":3}],"e":4},{"a":2,"b":1}]})");
  EXPECT_TRUE(accepts(grammar, R"({"e":4,"b":[{"d":3,"c":2}],"a":1})"));
  EXPECT_TRUE(accepts(grammar, R"({"b": 1, "a": 2})"));
  EXPECT_FALSE(accepts(grammar, R"({"b":1,"a":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"a":1,"b":[{"c":2,"d":3}]})"));
}

// Some tokens end one member and begin the next. Every reachable text can be completed.
TEST(AnyOrder, MasksAreWhatAcceptTakes) {
  const auto vocabulary =
      testing::byte_vocabulary({"{\"", "\"a\":", "a\":", "ab\":1", "\":1,\"", "1,\"b", ",\"", ", \"ab", "1}",
                                "\"b\":1}", "b\":1,\"a\":1", "{}", "\n  \"", "}]"});
  const std::string_view schemas[] = {
      R"({"type":"object","properties":{"a":{"const":1},"ab":{"const":1},"b":{"type":"array","items":{"$ref":"#"},"maxItems":1}},"required":["ab"]})",
      R"({"type":"object","properties":{"a":{"const":1},"ab":{"const":1},"b":{"const":1}},"required":["a","b"],"maxProperties":2})",
      R"({"type":"object","properties":{"a":{"const":1},"b":{"const":1}},"additionalProperties":{"const":1},"minProperties":2,"maxProperties":3})",
      R"({"anyOf":[{"type":"object","properties":{"a":{"const":1},"b":{"const":1}},"required":["a","b"]},
                   {"type":"object","properties":{"ab":{"const":1},"a":{"const":1}},"required":["ab"]}]})"};
  std::uint64_t seed = 5;
  for (const std::string_view schema : schemas) {
    const auto grammar = testing::compiled(json_schema_grammar(schema), schema, vocabulary);
    ASSERT_TRUE(grammar);
    for (int run = 0; run < 8; ++run) {
      Matcher matcher(grammar);
      for (int step = 0; step < 40 && !matcher.is_terminated(); ++step) {
        const auto mask = testing::mask_of(matcher, *vocabulary);
        ASSERT_EQ(mask, testing::brute_force_mask(matcher, *vocabulary)) << schema << " after " << step;
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < mask.size(); ++i)
          if (mask[i]) allowed.push_back(static_cast<TokenId>(i));
        ASSERT_FALSE(allowed.empty()) << schema << " after " << step;
        ASSERT_TRUE(matcher.accept(allowed[random_index(seed, allowed.size())]));
        if (random_index(seed, 6) == 0) matcher.rollback(1 + random_index(seed, 3));
      }
    }
  }
}

TEST(AnyOrder, TheLastMemberIsForced) {
  JsonOptions compact;
  compact.whitespace = JsonOptions::Whitespace::none;
  Matcher matcher(compile_schema(
      R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"required":["a","b"]})", compact));
  EXPECT_EQ(matcher.jump_forward(), R"({")");
  ASSERT_TRUE(testing::feed(matcher, R"({"b)"));
  EXPECT_EQ(matcher.jump_forward(), R"(":2,"a":1})");
}

// Schemas with a required member that no text matches, with too many required members, or with too few
// possible members.
TEST(AnyOrder, ObjectsThatCannotBe) {
  for (const std::string_view schema :
       {R"({"type":"object","properties":{"a":{"$ref":"#"},"b":{}},"required":["a"]})",
        R"({"type":"object","properties":{"a":{},"b":{}},"required":["a","b"],"maxProperties":1})",
        R"({"type":"object","properties":{"a":{},"b":{}},"minProperties":3,"additionalProperties":false})",
        R"({"type":"object","properties":{"a":{},"b":{}},"minProperties":2,"maxProperties":1})"}) {
    EXPECT_FALSE(json_schema_grammar(schema)) << schema;
  }
}

}  // namespace
}  // namespace octavo::grammar
