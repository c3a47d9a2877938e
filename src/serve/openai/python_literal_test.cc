#include "serve/openai/python_literal.h"

#include <gtest/gtest.h>

#include <optional>

namespace octavo::openai {
namespace {

// Reads `text` as the last argument of the last call, which ")]" follows. Returns nullopt if it is invalid or
// more text is needed.
std::optional<std::string> read(std::string_view text, bool nested_quotes = false) {
  const std::string closed = std::string(text) + ")]";
  CallCursor cursor(closed);
  std::string out;
  if (!read_python(cursor, out, nested_quotes) || cursor.at() != text.size()) return std::nullopt;
  return out;
}

TEST(PythonLiteral, IsWrittenAsJson) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"5", "5"},
      {"-5", "-5"},
      {"+2.5", "2.5"},
      {"07", "7"},
      {"-00", "-0"},
      {"1_000", "1000"},
      {".5", "0.5"},
      {"5.", "5.0"},
      {"-5.", "-5.0"},
      {"1e5", "1e5"},
      {"1.5E-3", "1.5E-3"},
      {"0x1F", "31"},
      {"0b101", "5"},
      {"0o17", "15"},
      {"12345678901234567890123", "12345678901234567890123"},
      {"True", "true"},
      {"false", "false"},
      {"None", "null"},
      {"null", "null"},
      {"'a'", R"("a")"},
      {R"("it's")", R"("it's")"},
      {R"('\'\"\\\n\t\x41\u00e9\101\0\q')", R"("'\"\\\n\tAéA\u0000\\q")"},
      {R"('\ud83d\ude00')", R"("😀")"},
      {R"(r'a\d')", R"("a\\d")"},
      {"'a' \"b\"", R"("ab")"},
      {"'''a\n'b''c'''", R"("a\n'b''c")"},
      {"''", R"("")"},
      {"'a\nb'", R"("a\nb")"},
      {"[]", "[]"},
      {"[1, 'a', [None],]", R"([1, "a", [null]])"},
      {"()", "[]"},
      {"(1,)", "[1]"},
      {"(1, 2)", "[1, 2]"},
      {"('a')", R"("a")"},
      {"{'a', 'b'}", R"(["a", "b"])"},
      {"{}", "{}"},
      {"{'a': 1, 'b': {'c': True,},}", R"({"a": 1, "b": {"c": true}})"},
      {"{1: 'a', None: 2, True: 3}", R"({"1": "a", "null": 2, "true": 3})"},
  };
  for (const auto& [text, json] : kCases) EXPECT_EQ(read(text), json) << text;
}

TEST(PythonLiteral, OtherExpressionsAreNone) {
  for (const std::string_view text : {"x",
                                      "b'z'",
                                      "f'{x}'",
                                      "1e999",
                                      "-1e999",
                                      "3j",
                                      "__import__('os')",
                                      "dict(a=1)",
                                      "1 2",
                                      "_1",
                                      "1__0",
                                      "1_",
                                      "nan",
                                      "inf",
                                      "{'a': 1, 'b'}",
                                      "{[1]: 2}",
                                      "{'a', 'b': 1}",
                                      "[1 2]",
                                      "'a'.upper()",
                                      "not True",
                                      "",
                                      "'a",
                                      "[1",
                                      "{'a': 1"})
    EXPECT_EQ(read(text), std::nullopt) << text;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += '[';
  EXPECT_EQ(read(deep + std::string(100, ']')), std::nullopt);
}

TEST(PythonLiteral, ANestedQuoteEndsNoString) {
  EXPECT_EQ(read("'sed -n '1,5p' x'", true), R"("sed -n '1,5p' x")");
  EXPECT_EQ(read("'sed -n '1,5p' x'"), std::nullopt);
  EXPECT_EQ(read("['a', 'b']", true), R"(["a", "b"])");
  // A quote ends the string only if the text after it can follow an argument.
  EXPECT_EQ(read(R"x('python -c "print(f(x, s='\,'))"')x", true),
            R"x("python -c \"print(f(x, s='\\,'))\"")x");
  EXPECT_EQ(read("'cut -d',' -f1, x'", true), R"("cut -d',' -f1, x")");
}

}  // namespace
}  // namespace octavo::openai
