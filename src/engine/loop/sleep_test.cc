#include <future>

#include "base/testing/scratch_directory.h"
#include "engine/testing/rig.h"

namespace octavo {
namespace {

Result<> sleep(Engine& engine, int level = 1) {
  std::promise<Result<>> done;
  engine.sleep(level, [&](Result<> result) { done.set_value(std::move(result)); });
  return done.get_future().get();
}

Result<> wake_up(Engine& engine) {
  std::promise<Result<>> done;
  engine.wake_up([&](Result<> result) { done.set_value(std::move(result)); });
  return done.get_future().get();
}

class SleepModes : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, SleepModes, EngineModes::all(), EngineModes::name);

TEST_P(SleepModes, WhatRunsIsFinishedAndTheCacheForgotten) {
  const ScratchDirectory folder;
  Rig rig({.mode = GetParam(),
           .kv_transfer = {.enabled = true,
                           .produces = true,
                           .port = 0,
                           .tier = KvTierOptions{.path_or_url = folder.path(), .load_always = true}}});
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (int i = 0; i < 10; ++i) {
      sinks.push_back(std::make_shared<Recorder>());
      Request request = request_for(prompt, 20 + i);
      // the request keeps a lease for 30 s
      if (i == 5) request.kv_transfer = KvTransferParams{.do_remote_decode = true};
      ASSERT_TRUE(rig.engine->submit(std::move(request), sinks.back()));
    }
    EXPECT_TRUE(sleep(*rig.engine));
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(sinks[static_cast<std::size_t>(i)]->record().tokens, expected(prompt, 20 + i));
    EXPECT_EQ(rig.engine->submit(request_for(prompt, 1), sinks[0]).error().code, ErrorCode::unavailable);
    EXPECT_TRUE(wake_up(*rig.engine));
  }
  rig.expect_empty();
}

TEST(Sleep, WhoWakesItFirstIsHeard) {
  Rig rig;
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(1, 20), 400), sink));
  std::promise<Result<>> done;
  rig.engine->sleep(1, [&](Result<> result) { done.set_value(std::move(result)); });
  EXPECT_TRUE(wake_up(*rig.engine));
  (void)done.get_future().get();  // either the sleep or the wake-up may be first
  auto next = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(2, 20), 5), next));
  next->wait_ended(1);
  EXPECT_EQ(next->record().tokens, expected(some_prompt(2, 20), 5));
}

TEST(Sleep, TheEndIsHeardAndOtherLevelsAreRefused) {
  Rig rig;
  EXPECT_EQ(sleep(*rig.engine, 2).error().field, "level");
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(1, 20), 400), sink));
  std::promise<Result<>> done;
  rig.engine->sleep(1, [&](Result<> result) { done.set_value(std::move(result)); });
  rig.engine.reset();
  (void)done.get_future().get();
}

}  // namespace
}  // namespace octavo
