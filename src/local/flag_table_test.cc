#include "local/flag_table.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

struct Inner {
  int number = 3;
  std::string text = "as is";
};
enum class Colour : std::uint8_t { red, blue };
struct FlagOptions {
  Inner inner;
  bool on = true;
  std::int64_t pause_us = 7'000'000;
  std::optional<int> maybe;
  double part = 1;
  std::optional<float> heat;
  std::uint16_t port = 1;
  std::vector<std::uint16_t> ports;
  Colour colour = Colour::blue;
  std::vector<std::string> words;
  boost::json::object object;
};

Inner& inner_of(FlagOptions& o) { return o.inner; }
void forget(FlagOptions& o) { o.inner = {}; }
Result<std::vector<std::string>> not_empty(const std::vector<std::string>& words) {
  if (words[0].empty()) return invalid("word", "is empty");
  return words;
}
std::vector<std::string> texts() { return {"as is", "b"}; }
std::string help_of_text() { return "made of a table"; }

constexpr Choice<Colour> kColours[] = {{"red", Colour::red}, {"blue", Colour::blue}};
constexpr FlagRow<FlagOptions> kTestFlags[] = {
    {"--number", flag::to<inner_of, &Inner::number>, "A number", flag::count(1, 100'000)},
    {"--text", flag::to<&FlagOptions::inner, &Inner::text>, help_of_text, OneOfList{texts}},
    {"!--off", flag::to<&FlagOptions::on>},
    {"--pause", flag::seconds<1'000'000, &FlagOptions::pause_us>, "Seconds", flag::range(1, 60)},
    {"--maybe", flag::to<&FlagOptions::maybe>, "", flag::range(0, 9), {.needs = "--number"}},
    {"--colour", flag::chosen<kColours, &FlagOptions::colour>},
    {"--words", flag::parsed<not_empty, &FlagOptions::words>, "", {}, {.excludes = "--number"}},
    {"--object", flag::parsed<json_object, &FlagOptions::object>},
    {"--part", flag::to<&FlagOptions::part>, "", flag::range(0.01, 1.0)},
    {"--heat", flag::to<&FlagOptions::heat>},
    {"--port", flag::to<&FlagOptions::port>},
    {"--ports", flag::to<&FlagOptions::ports>},
    {"--forget", flag::calls<forget>},
};

class FlagTable : public testing::Test {
 protected:
  FlagTable() { add_flags(app_, options_, "Group", kTestFlags); }

  // Returns "" or the error.
  std::string parse(std::vector<std::string> words) {
    std::ranges::reverse(words);
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  CLI::App app_;
  FlagOptions options_;
};

TEST_F(FlagTable, ValuesGoToTheirMembers) {
  EXPECT_EQ(parse({"--number", "2k", "--text", "b", "--off", "--pause", "9", "--maybe", "4", "--colour",
                   "red", "--object", R"({"a": 1})"}),
            "");
  EXPECT_EQ(options_.inner.number, 2000);
  EXPECT_EQ(options_.inner.text, "b");
  EXPECT_FALSE(options_.on);
  EXPECT_EQ(options_.pause_us, 9'000'000);
  EXPECT_EQ(options_.maybe, 4);
  EXPECT_EQ(options_.colour, Colour::red);
  EXPECT_EQ(options_.object.at("a"), 1);
  EXPECT_EQ(parse({"--words", "a", "b"}), "");
  EXPECT_EQ(options_.words, std::vector<std::string>({"a", "b"}));
}

TEST_F(FlagTable, RowsCallFunctions) {
  options_.inner.number = 8;
  EXPECT_EQ(parse({"--forget"}), "");
  EXPECT_EQ(options_.inner.number, 3);
}

TEST_F(FlagTable, ErrorsNameFlagAndField) {
  EXPECT_EQ(parse({"--number", "0"}), "--number: must be a whole number from 1 to 100000, got 0");
  EXPECT_EQ(parse({"--number", "x"}), "--number: must be a whole number from 1 to 100000, got x");
  EXPECT_EQ(parse({"--part", "1.5"}), "--part: must be a number from 0.01 to 1, got 1.5");
  // Without a range, the limits are those of the type.
  EXPECT_EQ(parse({"--port", "99999"}), "--port: must be a whole number from 0 to 65535, got 99999");
  EXPECT_EQ(parse({"--port", "-1"}), "--port: must be a whole number from 0 to 65535, got -1");
  EXPECT_EQ(parse({"--heat", "hot"}), "--heat: must be a number, got hot");
  EXPECT_EQ(parse({"--ports", "1", "2.5"}), "--ports: must be a whole number from 0 to 65535, got 2.5");
  EXPECT_EQ(parse({"--words", ""}), "--words: word is empty");
  EXPECT_EQ(parse({"--object", "[]"}), "--object: must be a JSON object, got []");
  EXPECT_EQ(parse({"--maybe", "1"}), "--maybe requires --number");
  EXPECT_EQ(parse({"--colour", "green"}), "--colour: green not in {red,blue}");
}

TEST_F(FlagTable, HelpShowsDefaultsInTheFlagsUnits) {
  EXPECT_EQ(app_.get_option("--number")->get_default_str(), "3");
  EXPECT_EQ(app_.get_option("--pause")->get_default_str(), "7");
  EXPECT_EQ(app_.get_option("--colour")->get_default_str(), "blue");
  EXPECT_EQ(app_.get_option("--maybe")->get_default_str(), "");
  EXPECT_EQ(app_.get_option("--text")->get_description(), "made of a table");
  EXPECT_EQ(app_.get_option("--text")->get_group(), "Group");
}

}  // namespace
}  // namespace octavo
