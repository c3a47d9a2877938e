#include "engine/cache/session_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <queue>
#include <random>

#include "base/random.h"
#include "schedule/testing/scheduled_engine.h"

namespace octavo {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000;

SchedulerOptions table_scheduler(int num_blocks) {
  SchedulerOptions o = small_scheduler();
  o.num_blocks = num_blocks;
  o.max_model_len = 400;
  o.max_num_batched_tokens = 512;
  o.max_steps_in_flight = 1;
  return o;
}

// A scheduler with sessions and a clock. Each turn runs alone.
struct Desk {
  explicit Desk(int num_blocks, SessionLimits limits = {}, SchedulerOptions options = {})
      : engine(options.num_blocks > 0 ? options : table_scheduler(num_blocks)),
        table(*engine.scheduler, 0, limits) {}

  // Returns the number of cached prompt tokens. `use` without an id: no session.
  int turn(const SessionUse& use, const std::vector<TokenId>& prompt, int output = 5) {
    auto accepted = std::make_shared<Accepted>();
    accepted->request.prompt = prompt;
    if (!use.key.id.empty()) accepted->request.session = use;
    table.advance(now_us);
    table.begin(accepted);
    const SequenceId id = engine.add(prompt, output + 1);
    int cached = -1;
    while (engine.scheduler->output(id).size() < static_cast<std::size_t>(output)) {
      engine.plan();
      EXPECT_FALSE(engine.step.empty());
      if (engine.step.empty()) return -1;
      if (cached < 0) cached = engine.step.sequences[0].cached_tokens;
      engine.complete(engine.step);
    }
    table.end(*accepted, engine.scheduler->find(id)->tokens, cached);
    engine.scheduler->finish(id);
    engine.scheduler->check();
    return cached;
  }
  int turn_of(const std::string& id, const std::vector<TokenId>& prompt, int output = 5) {
    return turn({.key = {"o", id}}, prompt, output);
  }

  Result<std::vector<SessionInfo>> command(SessionVerb verb, const std::string& id, int ttl_s = 0,
                                           const std::string& fork_id = "", const std::string& owner = "o") {
    table.advance(now_us);
    auto done = table.command({.verb = verb, .key = {owner, id}, .fork_id = fork_id, .ttl_s = ttl_s});
    engine.scheduler->check();
    return done;
  }
  SessionInfo info(const std::string& id) { return command(SessionVerb::list, id)->front(); }

  ScheduledEngine engine;
  SessionTable table;
  std::int64_t now_us = kOneSecond;
};

TEST(Sessions, AForkNeverRemovesItsSource) {
  Desk desk(100, {.sessions_max = 2});
  desk.turn_of("source", count_from(0, 40));
  desk.now_us += kOneSecond;
  desk.turn_of("newer", count_from(1000, 40));
  ASSERT_TRUE(desk.command(SessionVerb::fork, "source", 0, "fork"));
  EXPECT_EQ(desk.info("fork").tokens, desk.info("source").tokens);
  EXPECT_EQ(desk.command(SessionVerb::list, "newer").error().code, ErrorCode::not_found);
}

TEST(Sessions, HoldTheirBlocksWhileOthersEvictEachOther) {
  Desk desk(100);
  desk.turn_of("s", count_from(0, 60));
  for (int i = 1; i < 20; ++i) desk.turn_of("", count_from(1000 * i, 100));
  EXPECT_EQ(desk.turn_of("s", count_from(0, 60)), 56);
  EXPECT_EQ(desk.turn_of("", count_from(1000, 100)), 0);
  const SessionInfo s = desk.info("s");
  EXPECT_EQ(s.tokens, 64);
  EXPECT_EQ(s.blocks, 16);
  EXPECT_EQ(s.length, 65);
  EXPECT_EQ(s.turns, 2);
  EXPECT_EQ(s.prompt_tokens, 120);
  EXPECT_EQ(s.cached_tokens, 56);
}

TEST(Sessions, GiveTheirBlocksToARequestThatNeedsThem) {
  Desk desk(100);
  for (int i = 0; i < 5; ++i) desk.turn_of(std::to_string(i), count_from(1000 * i, 60));
  EXPECT_GE(desk.turn_of("", count_from(50'000, 390)), 0) << "98 of 100 blocks";
  EXPECT_GT(desk.table.stats().reclaimed_blocks, 60);
}

// The request continues the session "s", so it would gain nothing by taking the blocks of "s".
TEST(Sessions, GiveNothingToARequestThatCouldNotRunWithAllTheirBlocks) {
  Desk desk(100);
  Scheduler& scheduler = *desk.engine.scheduler;
  desk.turn_of("", count_from(5000, 164));
  PrefixHold* const elsewhere = scheduler.hold(count_from(5000, 164), {}, 0);
  ASSERT_NE(elsewhere, nullptr);
  desk.turn_of("s", count_from(0, 80));
  desk.turn_of("other", count_from(1000, 60));
  const auto expect_untouched = [&] {
    EXPECT_EQ(desk.info("s").blocks, 21);
    EXPECT_EQ(desk.info("other").blocks, 16);
    EXPECT_EQ(scheduler.stats().blocks_used, 40 + 21 + 16);
  };
  expect_untouched();
  std::vector<TokenId> longer = count_from(0, 80);  // 20 blocks of "s" and 48 more
  for (const TokenId token : count_from(9000, 192)) longer.push_back(token);
  const SequenceId waiting = desk.engine.add(longer, 2);
  EXPECT_TRUE(desk.engine.plan().empty());
  expect_untouched();
  EXPECT_EQ(scheduler.hold(count_from(7000, 321), {}, 80), nullptr);
  expect_untouched();
  scheduler.let_go(elsewhere);
  EXPECT_EQ(desk.engine.plan()[waiting], 192);
  desk.engine.complete(desk.engine.step);
  scheduler.finish(waiting);
}

TEST(Sessions, HoldAtMostTheirFraction) {
  Desk desk(100, {.held_fraction = 0.5});
  for (int i = 0; i < 20; ++i) {
    desk.turn_of(std::to_string(i), count_from(1000 * i, 60));
    EXPECT_LE(desk.table.stats().held_blocks, 50);
  }
  EXPECT_GE(desk.table.stats().held_blocks, 49);
}

TEST(Sessions, ReleaseDemoteAndTheTimeToLiveFreeBlocks) {
  Desk desk(100);
  for (const char* id : {"a", "b", "c"})
    desk.turn({.key = {"o", id}, .ttl_s = 10}, count_from(id[0] * 1000, 40));
  EXPECT_EQ(desk.table.stats().held_blocks, 33);
  EXPECT_TRUE(desk.command(SessionVerb::demote, "a"));
  EXPECT_EQ(desk.table.stats().held_blocks, 22);
  EXPECT_EQ(desk.info("a").blocks, 0);
  EXPECT_TRUE(desk.command(SessionVerb::release, "b"));
  EXPECT_EQ(desk.command(SessionVerb::list, "b").error().code, ErrorCode::not_found);
  EXPECT_EQ(desk.table.stats().held_blocks, 11);
  desk.now_us += 9 * kOneSecond;
  EXPECT_EQ(desk.info("c").blocks, 11);
  desk.now_us += 2 * kOneSecond;
  EXPECT_EQ(desk.command(SessionVerb::list, "c").error().code, ErrorCode::not_found);
  EXPECT_EQ(desk.table.stats().expired, 2);
  EXPECT_EQ(desk.engine.scheduler->stats().blocks_used, 0);
  EXPECT_EQ(desk.turn_of("c", count_from('c' * 1000, 40)), 36) << "still cached in LRU order";
}

TEST(Sessions, APinStaysUntilItsTimeEnds) {
  Desk desk(200, {.held_fraction = 0.9, .pinned_fraction = 0.5});
  desk.turn_of("p", count_from(0, 80));
  ASSERT_TRUE(desk.command(SessionVerb::pin, "p", 60));
  for (int i = 1; i < 20; ++i) desk.turn_of(std::to_string(i), count_from(1000 * i, 300));
  EXPECT_EQ(desk.info("p").blocks, 21);
  EXPECT_EQ(desk.turn_of("p", count_from(0, 80)), 76);
  desk.now_us += 61 * kOneSecond;
  EXPECT_FALSE(desk.info("p").pinned);
}

TEST(Sessions, APinThatCannotBeKeptIsRefusedAndNamesTheLimit) {
  Desk desk(200, {.pinned_fraction = 0.25});
  desk.turn_of("a", count_from(0, 80));
  desk.turn_of("b", count_from(1000, 80));
  ASSERT_TRUE(desk.command(SessionVerb::pin, "a", 60));
  const auto refused = desk.command(SessionVerb::pin, "b", 60);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("42, and the limit is 25 of 200"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(desk.command(SessionVerb::retain, "a"));
  EXPECT_TRUE(desk.command(SessionVerb::pin, "b", 60));
  EXPECT_EQ(desk.table.stats().pinned_blocks, 21);
}

TEST(Sessions, TheLongestRequestFitsBesideAllPins) {
  Desk desk(120, {.held_fraction = 1, .pinned_fraction = 1});  // a request of 400 tokens needs 100 blocks
  for (int i = 0; i < 10; ++i)
    desk.turn({.key = {"owner " + std::to_string(i), "s"}, .ttl_s = 3600, .pin = true},
              count_from(1000 * i, 30));
  EXPECT_GT(desk.table.stats().pinned_blocks, 8);
  EXPECT_LE(desk.table.stats().pinned_blocks, 20);
  EXPECT_GT(desk.table.stats().refused_pins, 0);
  EXPECT_EQ(desk.turn_of("", count_from(50'000, 394)), 0);
}

TEST(Sessions, AForkSharesItsBlocks) {
  Desk desk(100);
  desk.turn_of("s", count_from(0, 60));
  ASSERT_TRUE(desk.command(SessionVerb::fork, "s", 0, "f"));
  EXPECT_EQ(desk.table.stats().held_blocks, 16);
  EXPECT_EQ(desk.info("f").blocks, 16);
  EXPECT_EQ(desk.command(SessionVerb::fork, "s", 0, "f").error().field, "session_id");
  auto longer = count_from(0, 60);
  for (int i = 0; i < 40; ++i) longer.push_back(9000 + i);
  EXPECT_EQ(desk.turn_of("f", longer), 60);
  EXPECT_EQ(desk.table.stats().held_blocks, 26 + 1);
  EXPECT_TRUE(desk.command(SessionVerb::release, "s"));
  EXPECT_EQ(desk.turn_of("f", longer), 96);
}

TEST(Sessions, AForkBeyondTheLimitOfItsOwnerIsRefused) {
  Desk desk(100);  // 80 blocks may be held, so 320 by one owner with forks
  desk.turn_of("s", count_from(0, 60));
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(desk.command(SessionVerb::fork, "s", 0, std::to_string(i)));
  const auto refused = desk.command(SessionVerb::fork, "s", 0, "one too many");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("hold 336 blocks"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("limit is 320"), std::string::npos) << refused.error().message;
  EXPECT_EQ(desk.table.stats().sessions, 20);
  EXPECT_EQ(desk.table.stats().held_blocks, 16);
  ASSERT_TRUE(desk.command(SessionVerb::release, "7"));
  EXPECT_TRUE(desk.command(SessionVerb::fork, "s", 0, "one too many"));
}

TEST(Sessions, WithEqualTextsHoldABoundedNumberOfReferences) {
  Desk desk(100);
  for (int i = 0; i < 60; ++i) desk.turn_of(std::to_string(i), count_from(0, 60));
  const auto infos = desk.command(SessionVerb::list, "");
  ASSERT_TRUE(infos);
  int references = 0;
  for (const SessionInfo& info : *infos) references += static_cast<int>(info.blocks);
  EXPECT_EQ(references, 8 * 80);
}

TEST(Sessions, AnEmptySessionIsNotPinned) {
  Desk desk(200);
  desk.turn({.key = {"o", "short"}, .ttl_s = 60, .pin = true}, count_from(0, 2), 1);
  EXPECT_FALSE(desk.info("short").pinned);
  EXPECT_EQ(desk.table.stats().refused_pins, 1);
  const auto refused = desk.command(SessionVerb::pin, "short", 60);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("shorter than a block of 4 tokens"), std::string::npos)
      << refused.error().message;
}

TEST(Sessions, PinnedNamesAreLimited) {
  Desk desk(200, {.sessions_max = 16});  // at most 4 pins in total, and 2 per owner
  for (const char* id : {"a", "b", "c"}) desk.turn_of(id, count_from(id[0] * 1000, 8));
  ASSERT_TRUE(desk.command(SessionVerb::pin, "a", 60));
  ASSERT_TRUE(desk.command(SessionVerb::pin, "b", 60));
  const auto refused = desk.command(SessionVerb::pin, "c", 60);
  ASSERT_FALSE(refused);
  EXPECT_NE(
      refused.error().message.find("pinned sessions of this tenant would be 3, and the limit is 2 of 16"),
      std::string::npos)
      << refused.error().message;
  desk.turn({.key = {"p", "other"}, .pin = true}, count_from(50'000, 8));
  EXPECT_EQ(desk.table.stats().pinned, 3);
}

TEST(Sessions, ANameOfAnotherOwnerIsForgottenIfTheFirstOwnerUsesAllItsNames) {
  Desk desk(200, {.sessions_max = 4});
  desk.turn({.key = {"b", "idle"}}, count_from(1000, 8));
  desk.now_us += kOneSecond;
  std::vector<std::shared_ptr<Accepted>> running;
  for (const char* id : {"1", "2", "3"}) {
    running.push_back(std::make_shared<Accepted>());
    running.back()->request.session = SessionUse{.key = {"a", id}};
    desk.table.begin(running.back());
  }
  desk.turn({.key = {"c", "new"}}, count_from(2000, 8));
  EXPECT_TRUE(desk.command(SessionVerb::list, "new", 0, "", "c"));
  EXPECT_FALSE(desk.command(SessionVerb::list, "idle", 0, "", "b"));
  EXPECT_EQ(desk.command(SessionVerb::list, "", 0, "", "a")->size(), 3u);
}

TEST(Sessions, PinsLeaveRecurrentStatesToOthers) {
  SchedulerOptions o = table_scheduler(400);
  o.saved_states = 16;
  o.mamba_block_size = 8;
  Desk desk(0, {.pinned_fraction = 0.5}, o);  // at most 8 pinned states in total, and 4 per owner
  for (int i = 0; i < 4; ++i) {
    desk.turn_of(std::to_string(i), count_from(1000 * i, 40));
    EXPECT_TRUE(desk.command(SessionVerb::pin, std::to_string(i), 60));
  }
  desk.turn_of("4", count_from(4000, 40));
  const auto refused = desk.command(SessionVerb::pin, "4", 60);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("pinned states of this tenant would be 5, and the limit is 4 of 16"),
            std::string::npos)
      << refused.error().message;
  EXPECT_GT(desk.info("4").blocks, 0);
}

TEST(Sessions, APinHintOfALaterTurnExtendsThePin) {
  Desk desk(200, {.pinned_fraction = 0.5});
  const SessionUse use{.key = {"o", "s"}, .ttl_s = 10, .pin = true};
  desk.turn(use, count_from(0, 40));
  desk.now_us += 8 * kOneSecond;
  desk.turn(use, count_from(0, 40));
  desk.now_us += 8 * kOneSecond;
  EXPECT_TRUE(desk.info("s").pinned);
  ASSERT_TRUE(desk.command(SessionVerb::pin, "s", 60));
  desk.turn(use, count_from(0, 40));
  desk.now_us += 50 * kOneSecond;
  EXPECT_TRUE(desk.info("s").pinned) << "a shorter hint does not end the pin";
  desk.now_us += 11 * kOneSecond;
  EXPECT_EQ(desk.command(SessionVerb::list, "s").error().code, ErrorCode::not_found);
  EXPECT_EQ(desk.table.stats().pinned_blocks, 0);
}

TEST(Sessions, OwnersDoNotShareNames) {
  Desk desk(100);
  desk.turn({.key = {"a", "s"}}, count_from(0, 20));
  desk.turn({.key = {"b", "s"}}, count_from(500, 40));
  EXPECT_EQ(desk.command(SessionVerb::list, "", 0, "", "a")->size(), 1u);
  EXPECT_EQ(desk.command(SessionVerb::list, "s", 0, "", "b")->front().tokens, 44);
  EXPECT_EQ(desk.command(SessionVerb::list, "", 0, "", "")->size(), 2u) << "for the server itself";
  EXPECT_EQ(desk.command(SessionVerb::release, "s", 0, "", "c").error().code, ErrorCode::not_found);
}

// Pins and retained sessions of one owner do not change what another owner finds.
TEST(Sessions, AnOwnerThatHoldsEverythingCostsAnotherNothing) {
  const auto hits_of_b = [](bool greedy) {
    Desk desk(400);
    int hits = 0;
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; greedy && i < 20; ++i) {
        const std::string id = std::to_string(i);
        desk.now_us += kOneSecond / 10;
        desk.turn({.key = {"a", id}, .ttl_s = 3600, .priority = 10, .pin = true},
                  count_from(1000 * (i + 10), 80));
      }
      for (int i = 0; i < 6; ++i) {
        desk.now_us += kOneSecond / 10;
        hits += desk.turn({.key = {"b", std::to_string(i)}}, count_from(100'000 + 1000 * i, 80));
      }
    }
    return hits;
  };
  EXPECT_EQ(hits_of_b(false), 9 * 6 * 76);
  EXPECT_EQ(hits_of_b(true), 9 * 6 * 76);
}

TEST(Sessions, ForgetTheOldestNameOfTheOwnerWithMostNames) {
  Desk desk(100, {.sessions_max = 4});
  desk.turn({.key = {"b", "only"}}, count_from(0, 8));
  for (int i = 0; i < 6; ++i) {
    desk.now_us += kOneSecond;
    desk.turn({.key = {"a", std::to_string(i)}}, count_from(100 * i + 100, 8));
  }
  EXPECT_EQ(desk.table.stats().sessions, 4);
  EXPECT_TRUE(desk.command(SessionVerb::list, "only", 0, "", "b"));
  EXPECT_TRUE(desk.command(SessionVerb::list, "5", 0, "", "a"));
  EXPECT_FALSE(desk.command(SessionVerb::list, "0", 0, "", "a"));
}

TEST(Sessions, KeepOnlyHalfOfTheRecurrentStates) {
  SchedulerOptions o = table_scheduler(200);
  o.saved_states = 8;
  o.mamba_block_size = 8;
  Desk desk(0, {}, o);
  for (int i = 0; i < 8; ++i) desk.turn_of(std::to_string(i), count_from(1000 * i, 40));
  int with_blocks = 0;
  for (int i = 0; i < 8; ++i) with_blocks += desk.info(std::to_string(i)).blocks > 0;
  EXPECT_LE(with_blocks, 4);
  EXPECT_GE(with_blocks, 3);
  EXPECT_GT(desk.turn_of("", count_from(50'000, 40)), -1);
}

TEST(Sessions, ARestoredSessionHoldsTheBlocksThatAreLeft) {
  Desk desk(200);
  desk.turn({}, count_from(0, 60));
  std::vector<TokenId> text = count_from(0, 60);
  const auto restore = [&](const std::string& id, std::vector<TokenId> tokens, int pin_ttl_s) {
    desk.table.advance(desk.now_us);
    return desk.table.command({.verb = SessionVerb::restore,
                               .key = {"o", id},
                               .ttl_s = 60,
                               .text = SessionText{.tokens = std::move(tokens), .pin_ttl_s = pin_ttl_s}});
  };
  ASSERT_TRUE(restore("s", text, 0));
  EXPECT_EQ(desk.info("s").blocks, 14);
  EXPECT_FALSE(desk.info("s").pinned);
  ASSERT_TRUE(restore("gone", count_from(9000, 60), 60));
  EXPECT_EQ(desk.info("gone").blocks, 0);
  text.resize(40);
  ASSERT_TRUE(restore("pinned", text, 60));
  EXPECT_TRUE(desk.info("pinned").pinned);
  for (int i = 1; i < 20; ++i) desk.turn({}, count_from(1000 * i, 100));
  EXPECT_EQ(desk.turn_of("s", count_from(0, 60)), 56);
}

// A load in virtual time: each session has a turn, and then a pause. Returns the fraction of the prompt
// tokens that were cached.
struct AgentLoad {
  int sessions = 16;
  int num_blocks = 0;
  double pause_s = 1, spread = 0;  // spread: standard deviation of the logarithm of the pauses
  double turn_s = 0.02;            // time of a turn; turns run one after the other

  double hits(bool named) const {
    Desk desk(num_blocks);
    std::vector<std::vector<TokenId>> texts;
    std::mt19937 random(7);
    std::lognormal_distribution<double> pause(std::log(pause_s), std::max(spread, 1e-9));
    using Next = std::pair<std::int64_t, int>;  // time, session
    std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
    for (int i = 0; i < sessions; ++i) {
      texts.push_back(count_from(1000 * i, 60));
      next.emplace(static_cast<std::int64_t>(1e6 * pause(random)) + 1, i);
    }
    std::int64_t all = 0, cached = 0;
    for (int turns = 0; turns < 24 * sessions; ++turns) {
      const auto [at, i] = next.top();
      next.pop();
      desk.now_us = std::max(desk.now_us, at) + static_cast<std::int64_t>(turn_s * 1e6);
      auto& text = texts[static_cast<std::size_t>(i)];
      const int found = desk.turn_of(named ? std::to_string(i) : "", text, 1);
      if (turns >= 4 * sessions) {
        all += std::ssize(text);
        cached += found;
      }
      text.insert(text.end(), {1, 2, 3, 4});
      if (text.size() > 100) text.resize(60);
      next.emplace(desk.now_us + static_cast<std::int64_t>(1e6 * pause(random)), i);
    }
    return static_cast<double>(cached) / static_cast<double>(all);
  }
};

TEST(SessionLoad, FindsMoreThanLruIfSessionsTakeTurns) {
  const AgentLoad load{.num_blocks = 160};  // memory for 6 of 16 sessions
  const double lru = load.hits(false), sessions = load.hits(true);
  RecordProperty("lru", std::to_string(lru));
  RecordProperty("sessions", std::to_string(sessions));
  EXPECT_GE(sessions, 1.5 * lru);
  EXPECT_GE(sessions, 0.2);
}

// With very irregular pauses, no order is much better than LRU.
TEST(SessionLoad, FindsAsMuchAsLruIfPausesAreIrregular) {
  for (const double spread : {0.5, 1.0, 2.0}) {
    const AgentLoad load{.num_blocks = 160, .pause_s = 2, .spread = spread};
    const double lru = load.hits(false), sessions = load.hits(true);
    RecordProperty("lru_" + std::to_string(spread), std::to_string(lru));
    RecordProperty("sessions_" + std::to_string(spread), std::to_string(sessions));
    EXPECT_GE(sessions, lru) << "spread " << spread;
  }
}

TEST(SessionLoad, FindsAsMuchAsLruIfMemorySuffices) {
  const AgentLoad load{.num_blocks = 700, .spread = 1};
  EXPECT_GE(load.hits(false), 0.9);
  EXPECT_GE(load.hits(true), load.hits(false));
}

}  // namespace
}  // namespace octavo
