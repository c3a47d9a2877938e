#include "serve/openai/sampling_reader.h"

#include <gmock/gmock.h>

#include <string>

namespace octavo::openai {
namespace {

std::string error_of(std::string_view body) {
  const auto object = parse_body(body).value();
  Fields fields(object);
  SamplingParams params;
  Result<> read = read_draws(fields, {}, params);
  if (read) read = read_other_sampling(fields, params);
  return read ? "" : read.error().field + " " + read.error().message;
}

TEST(SamplingReader, ErrorsSayWhatTheFieldTakes) {
  EXPECT_EQ(error_of(R"({"stop": 5})"), "stop must be a string or a list of strings, got 5");
  EXPECT_EQ(error_of(R"({"stop": ["a", 5]})"), "stop must be a string, got 5");
  EXPECT_EQ(error_of(R"({"min_tokens": 1.5})"), "min_tokens must be a whole number, got 1.5");
  EXPECT_EQ(error_of(R"({"top_k": "many"})"), "top_k must be a whole number, got \"many\"");
  EXPECT_EQ(error_of(R"({"min_tokens": 3000000000})"),
            "min_tokens must be in [-2147483648, 2147483647], got 3000000000");
  EXPECT_EQ(error_of(R"({"temperature": []})"), "temperature must be a number, got an array");
  EXPECT_EQ(error_of(R"({"bad_words": "x"})"), "bad_words must be an array, got \"x\"");
  EXPECT_EQ(error_of(R"({"repetition_detection": {"min_count": "x"}})"),
            "repetition_detection.min_count must be a whole number, got \"x\"");
}

TEST(SamplingReader, RequestsComeBeforeTheEndpointAndTheModel) {
  const auto defaults = generation_defaults({{"temperature", 0.5}, {"top_k", 20.0}, {"n", 3}}).value();
  EXPECT_EQ(defaults.sampling, (boost::json::object{{"temperature", 0.5}, {"top_k", 20}}));
  const boost::json::object none, given{{"temperature", 0.25}};
  SamplingParams params;
  Fields nothing(none), some(given), again(none);
  ASSERT_TRUE(read_draws(nothing, defaults, params).has_value());
  EXPECT_EQ(params.temperature, 0.5);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.n, 1);
  ASSERT_TRUE(read_draws(again, defaults, params, 0.0).has_value());
  EXPECT_EQ(params.temperature, 0.0);
  ASSERT_TRUE(read_draws(some, defaults, params, 0.0).has_value());
  EXPECT_EQ(params.temperature, 0.25);
}

TEST(SamplingReader, DefaultsAreCheckedWhenTheyAreRead) {
  for (const boost::json::value& top_k : {boost::json::value(1e300), boost::json::value(2147483648),
                                          boost::json::value(-1e10), boost::json::value(0.5)})
    EXPECT_EQ(generation_defaults({{"top_k", top_k}}).error().field, "top_k");
  EXPECT_EQ(generation_defaults({{"max_new_tokens", 0}}).error().field, "max_new_tokens");
  EXPECT_EQ(generation_defaults({{"max_new_tokens", 7}, {"do_sample", true}}).value().max_tokens, 7);
  EXPECT_TRUE(is_generation_default("max_new_tokens") && is_generation_default("min_p"));
  EXPECT_FALSE(is_generation_default("n") || is_generation_default("do_sample"));
}

}  // namespace
}  // namespace octavo::openai
