// For tests: two engines in one process. One engine computes prompts, and the other loads their blocks and
// decodes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>

#include "engine/loop/engine.h"
#include "engine/testing/answers.h"
#include "engine/testing/rig.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

inline KvTransferOptions transfer_options(bool produces, bool shared_memory = true) {
  return {.enabled = true, .produces = produces, .consumes = !produces, .port = 0, .one_host = shared_memory};
}

// Sends the prefill request like a router: it generates one token and keeps the blocks of the prompt.
inline KvTransferParams prefill(Engine& engine, Request request) {
  request.sampling.max_tokens = 1;
  request.sampling.logprobs.output.reset();
  request.sampling.logprobs.prompt.reset();
  request.kv_transfer = KvTransferParams{.do_remote_decode = true};
  auto sink = std::make_shared<Recorder>();
  EXPECT_TRUE(engine.submit(std::move(request), sink));
  sink->wait_ended(1);
  const Recorder::Record record = sink->record();
  EXPECT_EQ(record.ends[0].finished, FinishReason::length);
  EXPECT_TRUE(record.ends[0].kv_transfer.has_value());
  return record.ends[0].kv_transfer.value_or(KvTransferParams{});
}

inline CollectedAnswer answer_of(Engine& producer, Engine& consumer, Request request) {
  request.kv_transfer = prefill(producer, request);
  auto sink = std::make_shared<Collector>();
  EXPECT_TRUE(consumer.submit(std::move(request), sink));
  sink->wait();
  return {sink->tokens, sink->logprobs};
}

inline std::int64_t failures(const Engine& engine) {
  const auto& all = engine.own_stats().kv_transfer.failures;
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}
inline std::int64_t failures(const Engine& engine, KvTransferFailure reason) {
  return engine.own_stats().kv_transfer.failures[static_cast<std::size_t>(reason)];
}
inline std::int64_t hits(const Engine& engine) { return engine.own_stats().kv_transfer.hits; }

}  // namespace octavo
