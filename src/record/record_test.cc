#include "record/record.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

Record example() {
  Request request;
  request.name = "secret name";
  request.prompt = {1, 2, 3};
  request.sampling.temperature = 0.1 + 0.2;
  request.sampling.tokens.logit_bias = {{7, -0.7F}};
  request.sampling.max_tokens.reset();
  request.grammar = grammar::GrammarSource{.kind = grammar::GrammarKind::regex, .text = "\"[a-z]+\n"};
  request.identity = {.adapter = "poet", .tenant = "key", .salt = "salt"};
  request.entropy = ~std::uint64_t{0};
  request.media.resize(1);
  request.media[0].digest = {5, 6};
  request.media[0].bytes = "\xff\xfe pixels";
  return {.id = "a",
          .arrived_us = 123,
          .engine = {.version = "1", .weights = "w"},
          .prompt_tokens = 3,
          .request = recorded_request(request, false),
          .answers = {{.index = 1,
                       .count = 2,
                       .tokens = {8, 9},
                       .hash = hash_of(std::vector<TokenId>{8, 9}),
                       .finish = "stop"}}};
}

TEST(Record, ALineComesBack) {
  const std::string line = record_line(example(), false);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Record record = parse_record(line).value();
  EXPECT_EQ(record.id, "a");
  EXPECT_EQ(record.engine, example().engine);
  ASSERT_TRUE(record.request);
  EXPECT_EQ(record.request->prompt, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(record.request->sampling.temperature, 0.1 + 0.2);
  EXPECT_EQ(record.request->sampling.tokens.logit_bias[0].second, -0.7F);
  EXPECT_FALSE(record.request->sampling.max_tokens);
  EXPECT_EQ(record.request->grammar->text, "\"[a-z]+\n");
  EXPECT_EQ(record.request->entropy, ~std::uint64_t{0});
  EXPECT_EQ(record.request->identity.adapter, "poet");
  EXPECT_EQ(record.request->media[0].digest, (Hash128{5, 6}));
  EXPECT_EQ(record.answers[0].tokens, (std::vector<TokenId>{8, 9}));
  EXPECT_EQ(record_line(record, false), line);
}

TEST(Record, NoClientIsNamedAndNoPixelIsKept) {
  const std::string line = record_line(example(), false);
  for (const char* secret : {"secret name", "\"key\"", "\"salt\"", "pixels"})
    EXPECT_EQ(line.find(secret), std::string::npos) << secret;
}

TEST(Record, HashesOnlyHaveNoIds) {
  const Record record = parse_record(record_line(example(), true)).value();
  EXPECT_FALSE(record.request);
  EXPECT_EQ(record.prompt_tokens, 3);
  EXPECT_EQ(record.request_hash, parse_record(record_line(example(), false)).value().request_hash);
  EXPECT_TRUE(record.answers[0].tokens.empty());
  EXPECT_EQ(record.answers[0].count, 2);
  EXPECT_EQ(record.answers[0].hash, example().answers[0].hash);
  Record other = example();
  other.request->sampling.temperature = 0.3;
  EXPECT_NE(parse_record(record_line(other, true)).value().request_hash, record.request_hash);
}

TEST(Record, ALineThatWasCutIsAnError) {
  const std::string line = record_line(example(), false);
  EXPECT_EQ(parse_record(line.substr(0, line.size() / 2)).error().message, "must be JSON");
  EXPECT_EQ(parse_record(R"({"answers":[{"index":"x"}]})").error().field, "answers.index");
}

}  // namespace
}  // namespace octavo
