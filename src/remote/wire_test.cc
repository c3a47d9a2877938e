#include "remote/wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace octavo::remote {
namespace {

template <class Message>
std::string frame_of(const Message& message) {
  std::string out = "before";
  append_frame(out, message);
  std::uint32_t size = 0;
  std::memcpy(&size, out.data() + 6, sizeof size);
  EXPECT_EQ(size, out.size() - 10);
  return out.substr(10);
}

Request some_request() {
  Request r;
  r.name = std::string("a\0b", 3);
  r.prompt = {0, 1, 127, 128, 65'535, 65'536, std::numeric_limits<TokenId>::max()};
  r.sampling.n = 3;
  r.sampling.temperature = 0.1;
  r.sampling.seed = std::numeric_limits<std::int64_t>::min();
  r.sampling.tokens.logit_bias = {{5, -99.5F}, {7, 1.0F / 3}};
  r.sampling.tokens.bad_words = {"x", "\xff"};
  r.sampling.tokens.bad_word_ids = {{1, 2}, {}};
  r.sampling.tokens.begin_suppress_tokens = {3};
  r.sampling.max_tokens.reset();
  r.sampling.repetition_detection = {3, 2, 4};
  r.sampling.logprobs.output = -1;
  r.sampling.detokenize = false;
  r.eos_ids = {2};
  r.priority = -5;
  r.identity = {"adapter", "tenant", "salt"};
  r.read_prefix_cache = false;
  r.grammar = {.kind = grammar::GrammarKind::regex,
               .text = "a+",
               .options = {.whitespace = grammar::JsonOptions::Whitespace::none, .any_order = true},
               .field = "f"};
  r.grammar_after = 9;
  r.thinking_budget = ThinkingBudget{8, 9, 100, 3};
  r.entropy = std::numeric_limits<std::uint64_t>::max();
  r.answers_so_far = {{1, {4, 5}}, {2, {}}};
  r.kv_transfer = {.do_remote_prefill = true,
                   .remote_engine_id = "e",
                   .remote_request_id = "r",
                   .remote_host = "::1",
                   .remote_port = 5600,
                   .remote_block_ids = {{1, 2}},
                   .remote_num_tokens = 33};
  r.media = {{{1, 2}, 3, 4, std::string("\0\xff", 2), 5}};
  return r;
}

TEST(Wire, ARequestArrivesAsItWasSent) {
  const std::string frame = frame_of(Submit{77, some_request()});
  const ToEngine message = read_to_engine(frame).value();
  const auto& submit = std::get<Submit>(message);
  EXPECT_EQ(submit.id, 77u);
  const Request& r = submit.request;
  EXPECT_EQ(r.name.size(), 3u);
  EXPECT_EQ(r.prompt, some_request().prompt);
  EXPECT_EQ(r.sampling.temperature, 0.1);
  EXPECT_EQ(r.sampling.seed, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(r.sampling.tokens.logit_bias, some_request().sampling.tokens.logit_bias);
  EXPECT_EQ(r.sampling.max_tokens, std::nullopt);
  EXPECT_EQ(r.identity, some_request().identity);
  EXPECT_EQ(r.grammar->options.whitespace, grammar::JsonOptions::Whitespace::none);
  EXPECT_EQ(r.entropy, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(r.answers_so_far[0].tokens, (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(frame_of(submit), frame) << "every field";
}

TEST(Wire, AnOutputArrivesAsItWasSent) {
  Output o;
  o.id = 5;
  o.index = 2;
  o.token_ids = {1, 2};
  o.logprobs = {{1, -std::numeric_limits<float>::infinity(), 3, {{4, -0.5F}}}};
  o.finished = FinishReason::error;
  o.error = Error{ErrorCode::invalid_argument, "no", "field"};
  o.kv_transfer = KvTransferParams{.remote_block_ids = {{7}}};
  o.times = {1, 2, 3, 4};
  const std::string frame = frame_of(o);
  const FromEngine message = read_from_engine(frame).value();
  const auto& read = std::get<Output>(message);
  EXPECT_EQ(read.logprobs[0].logprob, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(read.error->field, "field");
  EXPECT_EQ(read.finished, FinishReason::error);
  EXPECT_EQ(frame_of(read), frame);
}

TEST(Wire, StatsArriveAsTheyWereSent) {
  EngineStats stats;
  stats.requests.running = 3;
  stats.drafts.accepted[2] = 9;
  stats.step_tokens.observe(100);
  stats.kv_transfer.bytes.observe(1e6);
  stats.kv_transfer.failures[1] = 2;
  stats.kv_tier.load_seconds = 0.5;
  stats.kv_host_tier.blocks = 7;
  const std::string frame = frame_of(stats);
  const FromEngine message = read_from_engine(frame).value();
  EXPECT_EQ(std::get<EngineStats>(message).step_tokens.sum(), 100);
  EXPECT_EQ(std::get<EngineStats>(message).kv_transfer.bytes.sum(), 1e6);
  EXPECT_EQ(std::get<EngineStats>(message).kv_tier.load_seconds, 0.5);
  EXPECT_EQ(std::get<EngineStats>(message).kv_host_tier.blocks, 7);
  EXPECT_EQ(frame_of(std::get<EngineStats>(message)), frame);
  const FromEngine slept =
      read_from_engine(frame_of(Slept{Error{ErrorCode::unsupported, "no", "f"}})).value();
  EXPECT_EQ(std::get<Slept>(slept).error->field, "f");
  const ToEngine pause = read_to_engine(frame_of(Pause{7, PauseMode::wait})).value();
  EXPECT_EQ(std::get<Pause>(pause).mode, PauseMode::wait);
  const FromEngine paused =
      read_from_engine(frame_of(Paused{7, Error{ErrorCode::unavailable, "no", {}}})).value();
  EXPECT_EQ(std::get<Paused>(paused).id, 7U);
  const FromEngine ready =
      read_from_engine(frame_of(Ready{.info = {.index = 4, .architecture = "x", .sound = {80, 3000, 7}}}))
          .value();
  EXPECT_EQ(std::get<Ready>(ready).info.architecture, "x");
  EXPECT_EQ(std::get<Ready>(ready).info.sound.slots, 7);
}

// Arbitrary bytes give an error or a message, and never crash.
TEST(Wire, NonsenseIsAnError) {
  EXPECT_FALSE(read_to_engine(""));
  EXPECT_FALSE(read_to_engine("\xc1"));
  const std::string frame = frame_of(Submit{77, some_request()});
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_FALSE(read_to_engine(std::string_view(frame).substr(0, size)));
  EXPECT_FALSE(read_to_engine(frame + "\xc0"));
  for (std::size_t i = 0; i < frame.size(); ++i)
    for (const char byte : {'\x00', '\x7f', '\x90', '\xc0', '\xc4', '\xd3', '\xdd', '\xff'}) {
      std::string changed = frame;
      changed[i] = byte;
      (void)read_to_engine(changed);
      (void)read_from_engine(changed);
    }
}

}  // namespace
}  // namespace octavo::remote
