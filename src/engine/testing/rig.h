// For tests: an engine with the simulated device, and the output that it must have.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "engine/draft/draft_model.h"
#include "engine/execute/simulated_executor.h"
#include "engine/loop/engine.h"

namespace octavo {

inline constexpr int kVocab = 1000;
inline constexpr int kBlock = 16;

class Recorder final : public OutputSink {
 public:
  struct Record {
    std::vector<TokenId> tokens;
    std::vector<std::size_t> output_sizes;  // number of tokens in each Output
    std::vector<TokenLogprobs> logprobs, prompt_logprobs;
    std::vector<Output> ends;
  };

  void deliver(Output&& output) noexcept override {
    const std::lock_guard lock(mutex_);
    Record& r = records_[output.index];
    EXPECT_TRUE(r.ends.empty()) << "an output after the end";
    r.tokens.insert(r.tokens.end(), output.token_ids.begin(), output.token_ids.end());
    r.logprobs.insert(r.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
    r.prompt_logprobs.insert(r.prompt_logprobs.end(), output.prompt_logprobs.begin(),
                             output.prompt_logprobs.end());
    if (!output.token_ids.empty()) r.output_sizes.push_back(output.token_ids.size());
    ++outputs_;
    if (output.finished) {
      r.ends.push_back(std::move(output));
      ++ended_;
    }
    changed_.notify_all();
  }

  // Returns false after a timeout.
  bool wait_ended(int answers, std::chrono::seconds at_most = std::chrono::hours(1)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, at_most, [&] { return ended_ >= answers; });
  }
  void wait_outputs(int outputs) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outputs_ >= outputs; });
  }
  Record record(int index = 0) {
    const std::lock_guard lock(mutex_);
    return records_[index];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Record> records_;
  int ended_ = 0;
  int outputs_ = 0;
};

// Modes of the engine: synchronous steps, an asynchronous device, a proposer, a draft model, or pipeline
// stages.
enum class Mode : std::uint8_t { synchronous, asynchronous, proposing, drafting, staged };

// A proposer that knows the correct output tokens and proposes them with some errors.
class Prompter final : public Proposer {
 public:
  void learn(std::vector<TokenId> prompt, std::span<const TokenId> answer) {
    const std::lock_guard lock(mutex_);
    prompt.insert(prompt.end(), answer.begin(), answer.end());
    texts_.push_back(std::move(prompt));
  }

  Result<std::int64_t> propose(std::span<Draft> drafts) override {
    const std::lock_guard lock(mutex_);
    for (Draft& draft : drafts) propose(draft);
    return {};
  }
  void end(std::uint64_t, std::span<const TokenId>, int) override {}

 private:
  void propose(Draft& draft) {
    const std::span<const TokenId> text = draft.text;
    draft.tokens.clear();
    for (const auto& known : texts_) {
      if (known.size() <= text.size() || !std::equal(text.begin(), text.end(), known.begin())) continue;
      const std::size_t count = std::min(
          {static_cast<std::size_t>(draft.most), std::size_t{random_() % 6}, known.size() - text.size()});
      for (std::size_t i = 0; i < count; ++i)
        draft.tokens.push_back(random_() % 4 == 0 ? static_cast<TokenId>(random_() % kVocab)
                                                  : known[text.size() + i]);
      return;
    }
  }

  std::mutex mutex_;
  std::mt19937 random_{5};
  std::vector<std::vector<TokenId>> texts_;
};

struct Setup {
  int num_blocks = 64;
  int max_tokens = 64;
  int max_seqs = 8;
  int max_model_len = 512;
  int max_queued = 256;
  Mode mode = Mode::synchronous;
  bool prefix_caching = true;
  MakeVocabulary vocabulary{};
  KvTransferOptions kv_transfer{};
  std::string fingerprint = "simulated";
};

struct Rig {
  SimulatedExecutor* device = nullptr;
  Prompter* prompter = nullptr;  // set in Mode::proposing
  DraftModel* drafting = nullptr;
  std::unique_ptr<Engine> engine;

  explicit Rig(const Setup& setup = {}) {
    SchedulerOptions options;
    options.block_size = kBlock;
    options.num_blocks = setup.num_blocks;
    options.max_num_batched_tokens = setup.max_tokens;
    options.max_num_seqs = setup.max_seqs;
    options.max_model_len = setup.max_model_len;
    options.enable_prefix_caching = setup.prefix_caching;
    auto executor = std::make_unique<SimulatedExecutor>(
        SimulatedExecutorOptions{kVocab, kBlock, setup.num_blocks, setup.mode == Mode::asynchronous,
                                 setup.mode == Mode::staged ? 3 : 1, setup.fingerprint});
    device = executor.get();
    EngineParts parts{
        .executor = std::move(executor), .vocabulary = setup.vocabulary, .kv_transfer = setup.kv_transfer};
    if (setup.mode == Mode::proposing) {
      options.max_draft_tokens = 5;
      auto proposer = std::make_unique<Prompter>();
      prompter = proposer.get();
      parts.proposer = std::move(proposer);
    }
    if (setup.mode == Mode::drafting) {
      // The draft model is the same model, so all its draft tokens are accepted. Its cache can hold only a
      // few sequences.
      options.max_draft_tokens = 5;
      constexpr int kBlocks = 24;
      auto proposer = std::make_unique<DraftModel>(
          std::make_unique<SimulatedExecutor>(SimulatedExecutorOptions{kVocab, kBlock, kBlocks}),
          DraftModelLimits{.block_size = kBlock,
                           .num_blocks = kBlocks,
                           .groups = {{}},
                           .max_tokens = 40,
                           .max_model_len = setup.max_model_len,
                           .vocab_size = kVocab});
      drafting = proposer.get();
      parts.proposer = std::move(proposer);
    }
    EngineInfo info;
    info.max_queued = setup.max_queued;
    info.vocab_size = kVocab;
    engine = Engine::start(options, info, std::move(parts)).value();
  }

  // Makes the output of a request known to the proposer.
  void learn(const std::vector<TokenId>& prompt, std::span<const TokenId> answer) {
    if (prompter) prompter->learn(prompt, answer);
  }
  bool speculates() const { return prompter != nullptr || drafting != nullptr; }
  std::int64_t accepted_drafts() const {
    const auto& accepted = engine->own_stats().drafts.accepted;
    return std::accumulate(accepted.begin(), accepted.end(), std::int64_t{0});
  }

  // Waits until the counters are zero, because the engine updates them after the sink gets the last output.
  void expect_empty() {
    engine->reset_prefix_cache();
    const auto empty = [](const EngineStats& s) {
      return s.requests.running + s.requests.waiting + s.requests.unfinished + s.blocks.used +
                 s.blocks.cached + s.requests.bytes ==
             0;
    };
    for (int i = 0; i < 60'000 && !empty(engine->own_stats()); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const EngineStats stats = engine->own_stats();
    EXPECT_EQ(stats.requests.running, 0);
    EXPECT_EQ(stats.requests.waiting, 0);
    EXPECT_EQ(stats.blocks.used, 0);
    EXPECT_EQ(stats.requests.unfinished, 0);
    EXPECT_EQ(stats.requests.bytes, 0);
    if (drafting) {
      EXPECT_EQ(drafting->blocks_used(), 0);
    }
  }
};

inline Request request_for(std::vector<TokenId> prompt, int max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = max_tokens;
  return request;
}

inline std::vector<TokenId> some_prompt(unsigned seed, int length) {
  std::mt19937 random(seed);
  std::vector<TokenId> prompt(static_cast<std::size_t>(length));
  for (TokenId& token : prompt) token = static_cast<TokenId>(random() % kVocab);
  return prompt;
}

// Returns the output tokens of the simulated device for a prompt.
inline std::vector<TokenId> expected(std::vector<TokenId> tokens, int count) {
  const std::size_t prompt = tokens.size();
  for (int i = 0; i < count; ++i) tokens.push_back(SimulatedExecutor::next(tokens, kVocab));
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
}

class EngineModes : public testing::TestWithParam<Mode> {
 public:
  static auto all() {
    return testing::Values(Mode::synchronous, Mode::asynchronous, Mode::proposing, Mode::drafting,
                           Mode::staged);
  }
  static std::string name(const testing::TestParamInfo<Mode>& mode) {
    constexpr std::array kNames{"synchronous", "asynchronous", "proposing", "drafting", "staged"};
    return kNames[static_cast<std::size_t>(mode.param)];
  }
};

}  // namespace octavo
