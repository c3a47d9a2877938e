#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/testing/scheduled_engine.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

TEST(Scheduler, RefusesWhatCanNeverFit) {
  SchedulerOptions o = small_scheduler();
  o.num_blocks = 10;
  const auto scheduler = *Scheduler::create(o);
  const auto refusal = [&](int prompt, int total) {
    const auto tokens = count_from(0, prompt);
    const auto id = scheduler->add({.prompt = tokens, .max_total_tokens = total});
    return id ? std::string("admitted") : id.error().field + ": " + id.error().message;
  };
  EXPECT_THAT(refusal(0, 10), HasSubstr("prompt: the prompt is empty"));
  EXPECT_THAT(refusal(200, 200), HasSubstr("at most 199"));
  EXPECT_THAT(refusal(10, 10),
              HasSubstr("max_tokens: prompt and answer have 10 tokens, but must be from 11 to 200"));
  EXPECT_THAT(refusal(10, 201), HasSubstr("must be from 11 to 200"));
  EXPECT_THAT(refusal(10, 42),
              HasSubstr("42 tokens of prompt and answer need 11 cache blocks, but only 10 exist"));
  EXPECT_EQ(refusal(10, 41), "admitted") << "the last token is never computed";
  EXPECT_EQ(scheduler->stats().waiting, 1);
}

TEST(Scheduler, RefusesOneMoreThanItHasPlacesFor) {
  SchedulerOptions o = small_scheduler();
  o.max_sequences = 8;
  ScheduledEngine engine(o);
  for (int i = 0; i < 8; ++i) engine.add(count_from(0, 5), 1);
  const auto tokens = count_from(0, 5);
  const auto id = engine.scheduler->add({.prompt = tokens, .max_total_tokens = 6});
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::resource_exhausted);
  engine.run_until_idle();
  EXPECT_TRUE(engine.scheduler->add({.prompt = tokens, .max_total_tokens = 6}));
}

TEST(Scheduler, OptionsNameWhatIsWrong) {
  const auto field = [](auto change) {
    SchedulerOptions o = small_scheduler();
    change(o);
    const auto result = Scheduler::create(o);
    return result ? std::string() : result.error().field;
  };
  EXPECT_EQ(field([](auto&) {}), "");
  EXPECT_EQ(field([](auto& o) { o.num_blocks = 0; }), "num_blocks");
  EXPECT_EQ(field([](auto& o) { o.block_size = 0; }), "block_size");
  EXPECT_EQ(field([](auto& o) { o.max_model_len = 1; }), "max_model_len");
  EXPECT_EQ(field([](auto& o) { o.max_num_batched_tokens = 7; }), "max_num_batched_tokens");
  EXPECT_EQ(field([](auto& o) { o.watermark = 1.0; }), "watermark");
  EXPECT_EQ(field([](auto& o) { o.groups.clear(); }), "groups");
  EXPECT_EQ(field([](auto& o) { o.groups = {CacheGroup{-1}}; }), "window");
  EXPECT_THAT(field([](auto& o) { o.enable_chunked_prefill = false; }), HasSubstr("max_num_batched_tokens"));
}

// max_model_len of a loaded model is the length of the longest sequence that the scheduler admits.
TEST(SchedulerOptions, TheLongestSequenceIsTheLongestThatFits) {
  const std::vector<std::vector<CacheGroup>> all_groups = {{{0}}, {{0}, {64}}, {{64}}, {{0}, {100}, {7}}};
  for (const std::vector<CacheGroup>& groups : all_groups)
    for (const int steps : {1, 2})
      for (const int blocks : {3, 10, 31, 100}) {
        SchedulerOptions o;
        o.num_blocks = blocks;
        o.groups = groups;
        o.max_num_seqs = 4;
        o.max_num_batched_tokens = 48;
        o.max_steps_in_flight = steps;
        o.max_model_len = 4000;
        const int longest = longest_sequence(o);
        if (longest < 2) continue;
        o.max_model_len = longest;
        const auto fits = [&] {
          return (*Scheduler::create(o))
              ->fits(static_cast<std::size_t>(o.max_model_len) - 1, o.max_model_len);
        };
        EXPECT_TRUE(fits().has_value()) << fits().error().message;
        o.max_model_len = longest + 1;
        EXPECT_TRUE(longest == 4000 || !fits().has_value()) << longest << " is not the longest";
      }
}

}  // namespace
}  // namespace octavo
