// For tests: requests of many kinds, and functions that compare an engine's outputs with expected ones, bit
// for bit.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/loop/engine.h"

namespace octavo {

class Collector final : public OutputSink {
 public:
  void deliver(Output&& output) noexcept override {
    const std::lock_guard lock(mutex_);
    tokens.insert(tokens.end(), output.token_ids.begin(), output.token_ids.end());
    for (const auto* list : {&output.logprobs, &output.prompt_logprobs})
      for (const TokenLogprobs& l : *list) logprobs.push_back(std::bit_cast<std::uint32_t>(l.logprob));
    if (!output.finished) return;
    if (output.error) error = output.error->message;
    ended_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_; });
  }

  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;
  std::string error;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

struct CollectedAnswer {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;
  bool operator==(const CollectedAnswer&) const = default;
};

// Returns request i. The requests have prompts of many lengths, greedy or random sampling, penalties, and
// logprobs of prompt and output. Their outputs end at different times, so that steps have all sizes, mix
// prefill and decode, and lose sequences while they run.
inline Request request_of(int i, int vocab) {
  Request request;
  for (int t = 0; t < 3 + 7 * i; ++t) request.prompt.push_back((5 * i + 3 * t + 1) % vocab);
  SamplingParams& p = request.sampling;
  p.max_tokens = 4 + 3 * i;
  p.ignore_eos = true;
  p.temperature = i % 2 == 0 ? 0 : 0.9;
  p.seed = 100 + i;
  p.logprobs.output = 2;
  if (i % 3 == 1) p.penalties.presence = 0.5;
  if (i == 2) p.logprobs.prompt = 1;
  return request;
}

inline std::vector<CollectedAnswer> answers_to(Engine& engine, const std::vector<Request>& requests) {
  std::vector<std::shared_ptr<Collector>> sinks;
  for (const Request& request : requests) {
    sinks.push_back(std::make_shared<Collector>());
    EXPECT_TRUE(engine.submit(request, sinks.back()));
  }
  std::vector<CollectedAnswer> all;
  for (const auto& sink : sinks) {
    sink->wait();
    EXPECT_EQ(sink->error, "");
    all.push_back({sink->tokens, sink->logprobs});
  }
  return all;
}

inline std::vector<CollectedAnswer> answers_one_by_one(Engine& engine, const std::vector<Request>& requests) {
  std::vector<CollectedAnswer> all;
  for (const Request& request : requests) all.push_back(answers_to(engine, {request}).front());
  return all;
}

// Sends all requests without waiting, and then once more, so that the prefix cache is used. If `scarce` is
// set, repeats this until a sequence was preempted, which depends on arrival times.
inline void expect_answers(Engine& engine, const std::vector<Request>& requests,
                           const std::vector<CollectedAnswer>& expected, bool scarce) {
  const auto preempted = [&] { return engine.own_stats().preemptions > 0; };
  for (int round = 0; round < 2 || (scarce && !preempted() && round < 100); ++round)
    EXPECT_EQ(answers_to(engine, requests), expected) << "round " << round;
  EXPECT_EQ(preempted(), scarce);
}

inline std::vector<CollectedAnswer> answers_of(Engine& engine, int count) {
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) requests.push_back(request_of(i, engine.info().vocab_size));
  return answers_to(engine, requests);
}

}  // namespace octavo
