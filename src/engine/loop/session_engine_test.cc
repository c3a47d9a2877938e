// Tests sessions of a whole engine, with evictions, aborts, emptied caches and sleep.
#include <future>

#include "engine/testing/rig.h"

namespace octavo {
namespace {

class SessionModes : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, SessionModes, EngineModes::all(), EngineModes::name);

Result<std::vector<SessionInfo>> order(Engine& engine, SessionVerb verb, std::string id = "") {
  std::promise<Result<std::vector<SessionInfo>>> told;
  engine.command_sessions({.verb = verb, .key = {"o", std::move(id)}},
                          [&](auto result) { told.set_value(std::move(result)); });
  return told.get_future().get();
}

// Runs one request and checks its output. Returns the number of cached prompt tokens.
int turn_of(Rig& rig, const std::vector<TokenId>& prompt, const std::string& session, int output = 4) {
  Request request = request_for(prompt, output);
  if (!session.empty()) request.session = SessionUse{.key = {"o", session}};
  auto sink = std::make_shared<Recorder>();
  const auto id = rig.engine->submit(std::move(request), sink);
  EXPECT_TRUE(id) << id.error().message;
  if (!id) return -1;
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, expected(prompt, output));
  return sink->record().ends.at(0).cached_tokens;
}

TEST_P(SessionModes, KeepsASessionWhileOtherPromptsEvictEachOther) {
  Rig rig({.mode = GetParam()});
  const std::vector<TokenId> kept = some_prompt(1, 200);
  turn_of(rig, kept, "kept");
  for (unsigned i = 2; i < 12; ++i) turn_of(rig, some_prompt(i, 300), i % 2 == 0 ? "" : "other");
  EXPECT_EQ(turn_of(rig, kept, "kept"), 192);
  const auto sessions = order(*rig.engine, SessionVerb::list).value();
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[0].key.id, "kept");
  EXPECT_EQ(sessions[0].turns, 2);
  EXPECT_EQ(order(*rig.engine, SessionVerb::release, "kept")->size(), 1u);
  EXPECT_EQ(order(*rig.engine, SessionVerb::release, "other")->size(), 1u);
  rig.expect_empty();
}

// An iteration of the engine runs only some of the commands.
TEST_P(SessionModes, ManyCommandsRunInTheirOrder) {
  Rig rig({.mode = GetParam()});
  turn_of(rig, some_prompt(1, 64), "s");
  constexpr int kForks = 40;  // below the limit of forks
  std::vector<std::promise<std::size_t>> told(kForks);
  for (int i = 0; i < kForks; ++i) {
    rig.engine->command_sessions(
        {.verb = SessionVerb::fork, .key = {"o", "s"}, .fork_id = "f" + std::to_string(i)},
        [](const auto& result) { EXPECT_TRUE(result); });
    rig.engine->command_sessions({.verb = SessionVerb::list, .key = {"o", ""}}, [&, i](const auto& result) {
      told[static_cast<std::size_t>(i)].set_value(result->size());
    });
  }
  for (int i = 0; i < kForks; ++i)
    EXPECT_EQ(told[static_cast<std::size_t>(i)].get_future().get(), static_cast<std::size_t>(i) + 2);
}

// Requests of sessions and other requests compete for few blocks: outputs stay correct, and all end.
TEST_P(SessionModes, ManySessionsInAShortCacheGiveCorrectOutputs) {
  Rig rig({.num_blocks = 40, .mode = GetParam()});
  std::vector<std::pair<std::vector<TokenId>, std::shared_ptr<Recorder>>> all;
  for (unsigned round = 0; round < 6; ++round)
    for (unsigned i = 0; i < 12; ++i) {
      auto prompt = some_prompt(i, 60 + 16 * static_cast<int>(round));
      Request request = request_for(prompt, 20);
      if (i % 4 != 0)
        request.session = SessionUse{.key = {i % 3 == 0 ? "o" : "p", std::to_string(i)}, .pin = i == 5};
      all.emplace_back(std::move(prompt), std::make_shared<Recorder>());
      ASSERT_TRUE(rig.engine->submit(std::move(request), all.back().second));
    }
  for (const auto& [prompt, sink] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expected(prompt, 20));
  }
  rig.expect_empty();
}

TEST(SessionEngine, AnAbortedTurnIsHeldToo) {
  Rig rig({.num_blocks = 200});
  const std::vector<TokenId> prompt = some_prompt(1, 200);
  Request request = request_for(prompt, 300);
  request.session = SessionUse{.key = {"o", "s"}};
  auto sink = std::make_shared<Recorder>();
  const RequestId id = rig.engine->submit(std::move(request), sink).value();
  sink->wait_outputs(2);
  rig.engine->abort(id);
  sink->wait_ended(1);
  EXPECT_GE(order(*rig.engine, SessionVerb::list, "s")->front().tokens, 192);
}

TEST_P(SessionModes, AFailedTurnEndsToo) {
  Rig rig({.num_blocks = 200, .mode = GetParam()});
  const std::vector<TokenId> prompt = some_prompt(1, 50);
  const std::vector<TokenId> tokens = expected(prompt, 5);
  rig.device->break_after(tokens[2]);
  rig.learn(prompt, tokens);
  Request request = request_for(prompt, 20);
  request.session = SessionUse{.key = {"o", "s"}};
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(std::move(request), sink));
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().ends.at(0).finished, FinishReason::error);
  const SessionInfo s = order(*rig.engine, SessionVerb::list, "s")->front();
  EXPECT_EQ(s.turns, 1);
  EXPECT_FALSE(s.active);
  EXPECT_EQ(s.tokens, 48) << "the cached blocks of the prompt";
  EXPECT_EQ(order(*rig.engine, SessionVerb::release, "s")->size(), 1u);
  rig.expect_empty();
}

TEST(SessionEngine, AnEmptiedCacheAndSleepReleaseTheBlocksButKeepTheNames) {
  Rig rig;
  turn_of(rig, some_prompt(1, 100), "s");
  rig.engine->reset_prefix_cache();
  EXPECT_EQ(order(*rig.engine, SessionVerb::list, "s")->front().blocks, 0);
  EXPECT_EQ(turn_of(rig, some_prompt(1, 100), "s"), 0);
  std::promise<Result<>> slept;
  rig.engine->sleep(1, [&](Result<> result) { slept.set_value(std::move(result)); });
  ASSERT_TRUE(slept.get_future().get());
  std::promise<Result<>> woken;
  rig.engine->wake_up([&](Result<> result) { woken.set_value(std::move(result)); });
  ASSERT_TRUE(woken.get_future().get());
  EXPECT_EQ(order(*rig.engine, SessionVerb::list, "s")->front().blocks, 0);
  EXPECT_EQ(turn_of(rig, some_prompt(1, 100), "s"), 0);
  rig.expect_empty();
}

TEST(SessionEngine, IdleBlocksCountAsCached) {
  Rig rig;
  turn_of(rig, some_prompt(1, 100), "s");
  const auto stats = [&] {
    (void)order(*rig.engine, SessionVerb::list);
    return rig.engine->own_stats();
  };
  for (int i = 0; i < 60'000 && stats().blocks.used > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(stats().blocks.used, 0);
  EXPECT_EQ(stats().prefix_cache.sessions.held_blocks, 6);
  EXPECT_GE(stats().blocks.cached, 6);
}

}  // namespace
}  // namespace octavo
