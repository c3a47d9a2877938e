// Counts the allocations of a warm engine step, and tests which requests fail if a step runs out of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/out_of_memory.h"
#include "base/testing/allocations.h"
#include "engine/load/load.h"
#include "engine/testing/answers.h"

namespace octavo {
namespace {

constexpr int kTokens = 400;
constexpr int kVocabulary = 4096;
constexpr TokenId kEnd = kVocabulary - 1;

// Stores the number of allocations at each token. Allocates no memory itself.
class AllocationLog final : public OutputSink {
 public:
  void deliver(Output&& output) noexcept override {
    if (count_ < at_.size()) at_[count_++] = allocations();
    if (output.finished) ended_ = true;
  }
  // Returns the maximum number of allocations in one step, from token `first` to token `last`.
  long most(std::size_t first, std::size_t last) {
    while (!ended_) std::this_thread::yield();
    EXPECT_GE(count_, last);
    long most = 0;
    for (std::size_t i = first; i < last; ++i) most = std::max(most, at_[i] - at_[i - 1]);
    return most;
  }

 private:
  std::array<long, kTokens> at_ = {};
  std::size_t count_ = 0;
  std::atomic<bool> ended_ = false;
};

class StepMemory : public testing::Test {
 protected:
  StepMemory() {
    EngineOptions options;
    options.model.dir = "models/demo";
    options.device.type = "cpu";
    options.device.threads = 2;
    options.schedule.max_num_seqs = 4;
    options.cache.memory_bytes = 16 << 20;
    options.logprobs.max = -1;
    engine_ = load_engine(options,
                          {.vocabulary =
                               [](int) {
                                 std::vector<std::string> tokens;
                                 for (int id = 0; id < kVocabulary; ++id)
                                   tokens.push_back(std::string(1, static_cast<char>('a' + id % 26)) +
                                                    (id < 26 ? "" : std::to_string(id)));
                                 return grammar::Vocabulary::make(std::move(tokens), {}, {kEnd}, 1 << 20, {});
                               }})
                  .value();
  }

  static Request request() {
    Request request;
    request.prompt = {5, 6, 7, 8, 9};
    request.sampling.max_tokens = kTokens;
    request.sampling.ignore_eos = true;
    request.sampling.temperature = 0;
    return request;
  }

  std::unique_ptr<Engine> engine_;
};

// A step that follows an output of the same length allocates only the data that it sends: the list of ids
// and, with logprobs, the list of logprobs and the entries of each element.
TEST_F(StepMemory, AWarmStepAllocatesWhatLeavesWithTheAnswer) {
  struct Case {
    const char* name;
    long most;
    Request request;
  };
  std::vector<Case> cases{{"warms up", 100, request()},
                          {"plain", 1, request()},
                          {"log-probabilities", 3, request()},
                          {"grammar", 1, request()}};
  cases[2].request.sampling.logprobs.output = 5;
  cases[3].request.grammar = grammar::GrammarSource{
      .kind = grammar::GrammarKind::regex, .text = "[a-z0-9]*", .field = "structured_outputs.regex"};
  for (Case& c : cases) {
    const auto log = std::make_shared<AllocationLog>();
    ASSERT_TRUE(engine_->submit(std::move(c.request), log)) << c.name;
    // Lists of output tokens double their capacity at powers of two, which these steps do not reach.
    EXPECT_LE(log->most(260, kTokens - 5), c.most) << c.name;
  }
}

TEST_F(StepMemory, MemoryThatRunsOutInAStepEndsOneRequest) {
  const auto submit = [&](Request request) {
    auto sink = std::make_shared<Collector>();
    EXPECT_TRUE(engine_->submit(std::move(request), sink));
    return sink;
  };
  const auto alone = submit(request());
  alone->wait();
  Request answer = request(), prompt = request();
  answer.sampling.logprobs.output = kVocabulary;
  prompt.sampling.logprobs.prompt = kVocabulary;
  for (const Request& greedy : {answer, prompt}) {
    const auto beside = submit(request());
    {
      const ScarceMemory scarce(kVocabulary * sizeof(std::pair<TokenId, float>));
      const auto sink = submit(greedy);
      sink->wait();
      EXPECT_EQ(sink->error, out_of_memory().message);
      EXPECT_TRUE(sink->logprobs.empty());
    }
    beside->wait();
    EXPECT_EQ(beside->error, "");
    EXPECT_EQ(beside->tokens, alone->tokens);
  }
}

// Memory runs out within or outside a step. The shared grammar stays usable.
TEST_F(StepMemory, MemoryThatRunsOutForAMaskEndsOneRequest) {
  const auto submit = [&](Request request) {
    auto sink = std::make_shared<Collector>();
    EXPECT_TRUE(engine_->submit(std::move(request), sink));
    return sink;
  };
  const auto alone = submit(request());
  alone->wait();
  // The grammar is ambiguous, so the number of parses grows with the text.
  Request guided = request();
  guided.grammar = grammar::GrammarSource{.kind = grammar::GrammarKind::ebnf,
                                          .text = "root ::= root root root | root root | [a-z] | [0-9]",
                                          .field = "structured_outputs.grammar"};
  guided.sampling.max_tokens = 1;
  const auto first = submit(guided);
  first->wait();
  EXPECT_EQ(first->error, "");
  guided.sampling.max_tokens = 30;
  const auto beside = submit(request());
  {
    const ScarceMemory scarce(std::size_t{32} << 10);
    const auto sink = submit(guided);
    sink->wait();
    EXPECT_EQ(sink->error, out_of_memory().message);
  }
  beside->wait();
  EXPECT_EQ(beside->error, "");
  EXPECT_EQ(beside->tokens, alone->tokens);
  const auto again = submit(guided);
  again->wait();
  EXPECT_EQ(again->error, "");
  EXPECT_EQ(again->tokens.size(), 30u);
}

}  // namespace
}  // namespace octavo
