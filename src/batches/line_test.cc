#include "batches/line.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "base/testing/scratch_directory.h"

namespace octavo::batches {
namespace {

namespace json = boost::json;

const std::string kGood =
    R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"seed":123456789012345678901234567890}})";

TEST(BatchLine, KeepsTheBody) {
  std::string id;
  const Line line = read_line(kGood, id).value();
  EXPECT_EQ(id, "a");
  EXPECT_EQ(line.custom_id, "a");
  EXPECT_EQ(line.url, "/v1/completions");
  EXPECT_EQ(*line.body, R"({"seed":123456789012345678901234567890})") << "numbers keep their digits";
}

TEST(BatchLine, AnErrorNamesTheField) {
  const std::pair<std::string, std::string> bad[] = {
      {"{", ""},
      {"[]", ""},
      {R"({"custom_id":1})", "custom_id"},
      {R"({"custom_id":")" + std::string(kCustomIdBytesMax + 1, 'x') + R"("})", "custom_id"},
      {R"({"custom_id":"a","method":"GET"})", "method"},
      {R"({"custom_id":"a","method":"POST","url":"v1"})", "url"},
      {R"({"custom_id":"a","method":"POST","url":"/a/../b"})", "url"},
      {R"({"custom_id":"a","method":"POST","url":"/v1","body":[]})", "body"},
      {R"({"custom_id":"a","method":"POST","url":"/v1","body":{"stream":true}})", "body.stream"},
  };
  for (const auto& [text, field] : bad) {
    std::string id;
    const auto line = read_line(text, id);
    ASSERT_FALSE(line) << text;
    EXPECT_EQ(line.error().field, field) << text;
    if (text.find(R"("custom_id":"a")") != std::string::npos) {
      EXPECT_EQ(id, "a");
    }
  }
}

TEST(BatchLine, AnAnswerHasItsStatusOrItsError) {
  const json::value good = json::parse(output_line("a", 200, R"({"x":1})"));
  EXPECT_EQ(good.at("response").at("status_code"), 200);
  EXPECT_EQ(good.at("response").at("body").at("x"), 1);
  EXPECT_TRUE(good.at("error").is_null());
  const json::value refused = json::parse(output_line("a", 404, R"({"error":{"message":"m"}})"));
  EXPECT_EQ(refused.at("response").at("body").at("error").at("message"), "m");
  EXPECT_EQ(refused.at("error").at("error").at("message"), "m");
  const json::value unsent = json::parse(output_line("a", 0, R"({"code":"c"})"));
  EXPECT_TRUE(unsent.at("response").is_null());
  EXPECT_EQ(unsent.at("error").at("code"), "c");
  EXPECT_EQ(json::parse(output_line("a", 500, "no JSON")).at("response").at("body"), "no JSON");
}

TEST(BatchLine, BlankLinesCountAndAreSkipped) {
  const ScratchDirectory scratch;
  scratch.write("in", "one\n\n  \r\ntwo");
  LineReader lines(scratch / "in");
  EXPECT_EQ(lines.next()->number, 1);
  const auto second = lines.next();
  EXPECT_EQ(second->number, 4);
  EXPECT_EQ(second->text, "two");
  EXPECT_FALSE(lines.next());
  EXPECT_TRUE(lines.complete());
  EXPECT_FALSE(LineReader(scratch / "none").is_open());
}

}  // namespace
}  // namespace octavo::batches
