#include "openai/json_problem.h"

#include <gmock/gmock.h>

#include "openai/request_fields.h"

namespace octavo::openai {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view body) {
  const auto parsed = parse_body(body);
  return parsed ? "accepted" : parsed.error().message;
}

TEST(JsonProblem, TheErrorSaysWhatIsWrong) {
  for (const char* half : {R"(\ud800)", R"(\udc00)", R"(x\uD83D)", R"(\ud83d\u0041)", R"(\ud83d\ud83d)"})
    EXPECT_THAT(error_of(R"({"a":")" + std::string(half) + "\"}"), HasSubstr("half of a surrogate pair"))
        << half;
  for (const char* bytes : {"\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xc0\xaf"})
    EXPECT_THAT(error_of("{\"a\":\"" + std::string(bytes) + "\"}"), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of(R"({"temperature":NaN})"), HasSubstr("NaN is no JSON value"));
  EXPECT_THAT(error_of(R"({"a":[1,-Infinity]})"), HasSubstr("Infinity is no JSON value"));
}

TEST(JsonProblem, OtherErrorsKeepTheParsersWords) {
  for (const char* body :
       {R"({"a":"\ud83d\ude00"x})", R"({"a":"€"x})", "{\"a\" 1}", "{\"\xe2\x80\x9c\": 1 2}"})
    EXPECT_THAT(error_of(body), HasSubstr("syntax error")) << body;
}

}  // namespace
}  // namespace octavo::openai
