#include "record/compare.h"

#include <gmock/gmock.h>

namespace octavo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Record recorded(std::vector<TokenId> tokens, const std::string& finish) {
  Request request;
  request.prompt = {1};
  request.sampling.max_tokens = 100;
  request.priority = 5;
  request.engine = 2;
  const auto count = std::ssize(tokens);
  return {.request = request,
          .answers = {{.index = 0, .count = count, .tokens = std::move(tokens), .finish = finish}}};
}

std::string difference_from(const Record& record, std::vector<TokenId> tokens, const std::string& finish) {
  return difference(record, {{.index = 0, .tokens = std::move(tokens), .finish = finish}});
}

TEST(Compare, NamesTheFirstTokenThatDiffers) {
  const Record record = recorded({4, 5, 6}, "stop");
  EXPECT_EQ(difference_from(record, {4, 5, 6}, "stop"), "");
  EXPECT_EQ(difference_from(record, {4, 9, 6}, "stop"), "answer 0: token 1 is 9, but the record has 5");
  EXPECT_EQ(difference_from(record, {4, 5}, "stop"), "answer 0: has 2 tokens, but the record has 3");
  EXPECT_EQ(difference_from(record, {4, 5, 6, 7}, "stop"), "answer 0: has 4 tokens, but the record has 3");
  EXPECT_EQ(difference_from(record, {4, 5, 6}, "length"),
            "answer 0: ended because of length, but the record has stop");
  EXPECT_EQ(difference(record, {}), "answer 0: missing");
}

TEST(Compare, AnAbortedAnswerIsComparedUpToItsEnd) {
  const Record record = recorded({4, 5}, "abort");
  EXPECT_EQ(replayed_request(record)->sampling.max_tokens, 2);
  EXPECT_EQ(difference_from(record, {4, 5, 6}, "length"), "");
  EXPECT_EQ(difference_from(record, {4, 6}, "length"), "answer 0: token 1 is 6, but the record has 5");
  EXPECT_EQ(difference_from(record, {4}, "stop"), "answer 0: has 1 tokens, but the record has 2");
}

TEST(Compare, AResumedAnswerEndsAfterItsOwnTokens) {
  Record record = recorded({4, 5}, "abort");
  record.request->answers_so_far = {{.index = 0, .tokens = {1, 2, 3}}};
  EXPECT_EQ(replayed_request(record)->sampling.max_tokens, 5);
}

TEST(Compare, PoolingComparesHashes) {
  Record record = recorded({}, "stop");
  record.request->task = Task::embed;
  record.answers[0].hash = "a";
  EXPECT_EQ(difference(record, {{.index = 0, .hash = "a", .finish = "stop"}}), "");
  EXPECT_THAT(difference(record, {{.index = 0, .hash = "b", .finish = "stop"}}),
              HasSubstr("a different hash"));
}

TEST(Compare, RefusesByName) {
  const auto reason = [](const Record& record) { return replayed_request(record).error().message; };
  EXPECT_THAT(reason({}), HasSubstr("--record-hashes-only"));
  EXPECT_THAT(reason(recorded({}, "error")), HasSubstr("reported an error"));
  EXPECT_THAT(reason(recorded({}, "abort")), HasSubstr("before the first token"));
  Record image = recorded({1}, "stop");
  image.request->media.resize(1);
  EXPECT_THAT(reason(image), HasSubstr("images"));
}

TEST(Compare, OnlyWhatDeterminesTheAnswerIsReplayed) {
  const Request request = replayed_request(recorded({1}, "stop")).value();
  EXPECT_EQ(request.priority, 0);
  EXPECT_FALSE(request.engine);
  EXPECT_EQ(request.sampling.max_tokens, 100);
}

TEST(Compare, ReasonsAreTheFieldsThatDiffer) {
  Record record = recorded({1}, "stop");
  record.engine = {.version = "1", .binary = "b", .weights = "w", .device = "cpu (amx)"};
  record.adapter = "a";
  EXPECT_EQ(reasons(record, record.engine, "a"), "no reason is known");
  EngineIdentity other = record.engine;
  other.weights = "x";
  other.device = "cpu (avx2)";
  EXPECT_THAT(reasons(record, other, ""),
              AllOf(HasSubstr("other weights: x, recorded w"),
                    HasSubstr("other device: cpu (avx2), recorded cpu (amx)"),
                    HasSubstr("other adapter: none, recorded a"), Not(HasSubstr("binary"))));
  record.request->kv_transfer = KvTransferParams{.do_remote_prefill = true};
  EXPECT_EQ(reasons(record, record.engine, "a"), "KV blocks of another engine");
}

}  // namespace
}  // namespace octavo
