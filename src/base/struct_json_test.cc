#include "base/struct_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace octavo {
namespace {

enum class Colour : std::uint8_t { red, green };

struct Inner {
  int depth = 3;
  std::string text;
  bool operator==(const Inner&) const = default;
};

struct Outer {
  bool flag = false;
  std::uint64_t large = 0;
  double share = 1.0;
  float bias = 0;
  Colour colour = Colour::red;
  std::optional<int> maybe = 16;
  std::vector<std::int32_t> ids{};
  std::vector<std::pair<std::int32_t, float>> pairs{};
  std::array<std::int64_t, 2> both{};
  Inner inner{};
  std::vector<Inner> inners{};
  bool operator==(const Outer&) const = default;
};

std::string text_of(const Outer& outer) { return exact_json_text(to_json(outer)); }

Result<Outer> read_back(const std::string& text) {
  boost::system::error_code error;
  const boost::json::value value = parse_exact_json(text, error);
  EXPECT_FALSE(error) << text;
  return from_json<Outer>(value);
}

TEST(StructJson, DefaultsAreLeftOut) {
  EXPECT_EQ(text_of({}), "{}");
  EXPECT_EQ(text_of({.share = 0.5, .inner = {.depth = 4, .text = {}}}),
            R"({"share":0.5,"inner":{"depth":4}})");
}

TEST(StructJson, EveryValueComesBack) {
  const Outer outer{.flag = true,
                    .large = std::numeric_limits<std::uint64_t>::max(),
                    .share = 0.1 + 0.2,
                    .bias = 0.7F,
                    .colour = Colour::green,
                    .maybe = std::nullopt,
                    .ids = {1, -2, 3},
                    .pairs = {{7, -0.3F}},
                    .both = {1, 2},
                    .inner = {.depth = 0, .text = "\"a\"\n"},
                    .inners = {{.depth = 1, .text = "b"}, {}}};
  EXPECT_EQ(read_back(text_of(outer)).value(), outer);
  EXPECT_EQ(read_back("{}").value(), Outer{});
}

TEST(StructJson, ErrorsNameTheField) {
  const auto field = [](const std::string& text) { return read_back(text).error().field; };
  EXPECT_EQ(field(R"({"inner":{"depth":"x"}})"), "inner.depth");
  EXPECT_EQ(field(R"({"ids":[1,2.5]})"), "ids");
  EXPECT_EQ(field(R"({"both":[1]})"), "both");
  EXPECT_EQ(field(R"({"large":-1})"), "large");
  EXPECT_EQ(field(R"({"inner":{"height":1}})"), "inner.height");
}

}  // namespace
}  // namespace octavo
