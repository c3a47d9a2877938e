#include "remote/unfinished_requests.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace octavo::remote {
namespace {

struct Outputs final : OutputSink {
  std::vector<Output> all;
  void deliver(Output&& output) noexcept override { all.push_back(std::move(output)); }
};

Request two_answers() {
  Request request;
  request.prompt = {1, 2};
  request.sampling.n = 2;
  return request;
}

Output tokens(RequestId id, int index, std::vector<TokenId> ids, std::optional<FinishReason> end = {}) {
  Output output;
  output.id = id;
  output.index = index;
  output.token_ids = std::move(ids);
  output.finished = end;
  return output;
}

struct UnfinishedRequestsTest : testing::Test {
  int freed = 0;
  UnfinishedRequests requests{[this](int answers) { freed += answers; }};
  std::shared_ptr<Outputs> sink = std::make_shared<Outputs>();
};

// Returns the messages that a new engine gets.
std::vector<Submit> messages(const UnfinishedRequests& requests) {
  std::string frames;
  requests.append_all(frames);
  std::vector<Submit> all;
  for (std::string_view rest = frames; !rest.empty();) {
    std::uint32_t size = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    all.push_back(std::get<Submit>(read_to_engine(rest.substr(sizeof size, size)).value()));
    rest.remove_prefix(sizeof size + size);
  }
  return all;
}

TEST_F(UnfinishedRequestsTest, ANewEngineGetsTheTokensSoFarOfUnfinishedAnswers) {
  EXPECT_EQ(requests.add(7, two_answers(), sink, 100).request.answers_so_far.size(), 2u);
  EXPECT_TRUE(requests.take(tokens(7, 0, {5}), 200));
  EXPECT_TRUE(requests.take(tokens(7, 1, {6}), 210));
  EXPECT_TRUE(requests.take(tokens(7, 1, {8}), 220));
  EXPECT_TRUE(requests.take(tokens(7, 0, {9}, FinishReason::stop), 300));
  EXPECT_FALSE(requests.take(tokens(7, 0, {9}), 310)) << "this answer has ended";
  EXPECT_FALSE(requests.take(tokens(8, 0, {9}), 310)) << "unknown";
  EXPECT_EQ(freed, 0);
  const std::vector<Submit> sent = messages(requests);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].id, 7u);
  ASSERT_EQ(sent[0].request.answers_so_far.size(), 1u);
  EXPECT_EQ(sent[0].request.answers_so_far[0].index, 1);
  EXPECT_EQ(sent[0].request.answers_so_far[0].tokens, (std::vector<TokenId>{6, 8}));
  (void)requests.take(tokens(7, 1, {}, FinishReason::length), 400);
  EXPECT_EQ(freed, 2);
  EXPECT_EQ(requests.size(), 0u);
  ASSERT_EQ(sink->all.size(), 5u);
  EXPECT_EQ(sink->all.back().times.arrived_us, 100);
}

TEST_F(UnfinishedRequestsTest, TheCostOfADeadEngineIsKept) {
  (void)requests.add(7, two_answers(), sink, 100);
  Output output = tokens(7, 1, {6});
  output.cost[CostUnit::compute_nanoseconds] = 500;
  const AnswerCost cost = output.cost;
  (void)requests.take(std::move(output), 200);
  (void)requests.take(tokens(7, 1, {}), 210);  // progress of the prompt does not count as a token
  const std::vector<Submit> sent = messages(requests);
  EXPECT_EQ(sent[0].request.answers_so_far[0].cost, AnswerCost());
  EXPECT_EQ(sent[0].request.answers_so_far[1].cost, cost);
  requests.end_all({ErrorCode::internal, "gone", {}});
  EXPECT_EQ(sink->all.back().cost, cost);
}

TEST_F(UnfinishedRequestsTest, AbortedOnesEndWithTheEngine) {
  requests.add(1, two_answers(), sink, 0);
  EXPECT_FALSE(requests.mark_aborted(2));
  EXPECT_TRUE(requests.mark_aborted(1));
  EXPECT_EQ(freed, 0) << "the engine ends it";
  requests.engine_died({ErrorCode::internal, "dead", {}}, false);
  EXPECT_EQ(freed, 2);
  ASSERT_EQ(sink->all.size(), 2u);
  EXPECT_EQ(sink->all[0].finished, FinishReason::abort);
}

TEST_F(UnfinishedRequestsTest, ARequestThatKillsEnginesEndsAndTokensForgive) {
  requests.add(1, two_answers(), sink, 0);
  constexpr int kDeaths = UnfinishedRequests::kDeathsMax / UnfinishedRequests::kYoungDeath;
  const Error death{ErrorCode::internal, "killed by signal 6", {}};
  for (int deaths = 1; deaths < kDeaths; ++deaths) requests.engine_died(death, true);
  EXPECT_EQ(freed, 0);
  (void)requests.take(tokens(1, 0, {5}), 0);
  for (int deaths = 1; deaths < kDeaths; ++deaths) requests.engine_died(death, true);
  EXPECT_EQ(freed, 0) << "a token in between";
  requests.engine_died(death, true);
  EXPECT_EQ(freed, 2);
  EXPECT_EQ(sink->all.back().finished, FinishReason::error);
  EXPECT_EQ(sink->all.back().error->message,
            "engines crashed in a row while they ran this request; the last error: killed by signal 6");
}

TEST_F(UnfinishedRequestsTest, EndsAllWithAnError) {
  requests.set_engine(3);
  requests.add(1, two_answers(), sink, 0);
  Request adapted = two_answers();
  adapted.identity.adapter = "a";
  requests.add(2, std::move(adapted), sink, 0);
  EXPECT_TRUE(requests.use_adapter("a"));
  EXPECT_FALSE(requests.use_adapter("b"));
  requests.end_all({ErrorCode::unavailable, "stopped", {}});
  EXPECT_EQ(freed, 4);
  ASSERT_EQ(sink->all.size(), 4u);
  EXPECT_EQ(sink->all[0].engine, 3);
  EXPECT_FALSE(requests.use_adapter("a"));
}

}  // namespace
}  // namespace octavo::remote
