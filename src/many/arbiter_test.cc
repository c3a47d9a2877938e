#include "many/arbiter.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace octavo::many {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
using Kind = Action::Kind;

// Runs actions in virtual time: a load and an unload take a fixed time. At most `memory` bytes are used.
struct Machine {
  Arbiter arbiter;
  std::int64_t load_us = kSecond, unload_us = kSecond / 10, now_us = 1;
  bool keeps_caches = true;
  std::multimap<std::int64_t, Action> running{};
  std::vector<int> loads = std::vector<int>(arbiter.models().size());
  std::vector<std::int64_t> present_us = std::vector<std::int64_t>(arbiter.models().size());
  std::vector<std::size_t> dropped{};

  void step() {
    while (!running.empty() && running.begin()->first <= now_us) {
      const Action action = running.begin()->second;
      running.erase(running.begin());
      const ModelRules& rules = arbiter.models()[action.model].rules;
      if (action.kind == Kind::load)
        arbiter.loaded(action.model, now_us, rules.weight_bytes, rules.cache_bytes, keeps_caches);
      else
        arbiter.unloaded(action.model, now_us);
    }
    for (const Action& action : arbiter.decide(now_us)) {
      if (action.kind == Kind::drop_cache) {
        dropped.push_back(action.model);
        continue;
      }
      if (action.kind == Kind::load) ++loads[action.model];
      running.emplace(now_us + (action.kind == Kind::load ? load_us : unload_us), action);
    }
    EXPECT_LE(arbiter.used_bytes(), arbiter.memory_bytes());
  }

  void run_until(std::int64_t end_us, const std::function<void()>& each = [] {}) {
    constexpr std::int64_t kTick = kSecond / 50;
    for (; now_us < end_us; now_us += kTick) {
      each();
      step();
      for (std::size_t i = 0; i < loads.size(); ++i)
        if (is(i, Presence::loaded)) present_us[i] += kTick;
    }
  }

  bool is(std::size_t model, Presence presence) const { return arbiter.models()[model].presence == presence; }
  void load(std::size_t model) {
    arbiter.requested(model, now_us);
    run_until(now_us + 2 * load_us + 2 * unload_us);
    ASSERT_TRUE(is(model, Presence::loaded)) << model;
  }
};

Machine machine(std::int64_t memory, std::vector<ModelRules> models, std::int64_t slice_us = 5 * kSecond) {
  return {.arbiter = Arbiter::make({.memory_bytes = memory, .slice_us = slice_us}, models).value()};
}

std::vector<ModelRules> equal_models(std::size_t count, std::int64_t weights = 10, std::int64_t cache = 0) {
  return std::vector<ModelRules>(count, {.weight_bytes = weights, .cache_bytes = cache});
}

TEST(Arbiter, TheLeastRecentlyUsedIdleModelLeaves) {
  Machine m = machine(30, equal_models(4));
  for (const std::size_t model : {0, 1, 2}) m.load(model);
  m.arbiter.requested(0, m.now_us);
  m.load(3);
  EXPECT_TRUE(m.is(0, Presence::loaded));
  EXPECT_TRUE(m.is(1, Presence::unloaded));
  EXPECT_TRUE(m.is(2, Presence::loaded));
}

TEST(Arbiter, PinnedModelsStay) {
  std::vector<ModelRules> models = equal_models(3);
  models[0].pinned = true;
  Machine m = machine(20, models);
  m.load(0);
  m.load(1);
  m.load(2);
  EXPECT_TRUE(m.is(0, Presence::loaded));
  EXPECT_TRUE(m.is(1, Presence::unloaded));
  m.run_until(m.now_us + 100 * kSecond);
  EXPECT_TRUE(m.is(0, Presence::loaded));
}

TEST(Arbiter, ModelsThatNeverFitAreRefused) {
  std::vector<ModelRules> models = equal_models(3);
  EXPECT_TRUE(Arbiter::make({.memory_bytes = 10}, models));
  EXPECT_EQ(Arbiter::make({.memory_bytes = 9}, models).error().field, "models_memory");
  models[1].pinned = true;
  EXPECT_FALSE(Arbiter::make({.memory_bytes = 19}, models)) << "no room beside the pinned model";
  EXPECT_TRUE(Arbiter::make({.memory_bytes = 20}, models));
}

TEST(Arbiter, OnlyAsManyModelsLeaveAsNecessary) {
  Machine m =
      machine(40, {{.weight_bytes = 5}, {.weight_bytes = 30}, {.weight_bytes = 5}, {.weight_bytes = 25}});
  for (const std::size_t model : {0, 1, 2}) m.load(model);
  m.load(3);
  EXPECT_TRUE(m.is(0, Presence::loaded)) << "it was used longest ago, but model 1 must leave anyway";
  EXPECT_TRUE(m.is(1, Presence::unloaded));
  EXPECT_TRUE(m.is(2, Presence::loaded));
}

TEST(Arbiter, ABusyModelHasItsSlice) {
  Machine m = machine(10, equal_models(2));
  m.load(0);
  const std::int64_t loaded_us = m.arbiter.models()[0].loaded_us;
  m.arbiter.set_busy(0, true, m.now_us);
  m.arbiter.requested(1, m.now_us);
  m.run_until(loaded_us + 5 * kSecond - 1);
  EXPECT_TRUE(m.is(0, Presence::loaded));
  m.run_until(loaded_us + 7 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::loaded));
  EXPECT_GT(m.arbiter.models()[0].wanted_us, 0) << "its requests wait";
  m.run_until(m.now_us + 7 * kSecond);
  EXPECT_TRUE(m.is(0, Presence::loaded)) << "it returns";
}

TEST(Arbiter, AModelStaysAtLeastAsLongAsItsLoadTook) {
  Machine m = machine(10, equal_models(2), kSecond);
  m.load_us = 20 * kSecond;
  m.arbiter.requested(0, m.now_us);
  m.run_until(m.now_us + 21 * kSecond);
  m.arbiter.requested(1, m.now_us);
  m.run_until(m.now_us + 18 * kSecond);
  EXPECT_TRUE(m.is(0, Presence::loaded)) << "also without requests";
  m.run_until(m.now_us + 22 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::loaded));
}

TEST(Arbiter, ADeadlineShortensTheSlice) {
  for (const std::int64_t seconds : {3, 60}) {
    Machine m = machine(10, equal_models(2), 20 * kSecond);
    m.load(1);
    m.load(0);
    m.arbiter.set_busy(0, true, m.now_us);
    const std::int64_t deadline_us = m.now_us + seconds * kSecond;
    m.arbiter.requested(1, m.now_us, deadline_us);
    m.run_until(deadline_us - 1);
    EXPECT_EQ(m.loads[1], 2) << "in time";
    EXPECT_EQ(m.arbiter.models()[1].loaded_us < m.now_us - 10 * kSecond, seconds == 60);
  }
  Machine m = machine(10, equal_models(2), 20 * kSecond);
  m.load(1);
  m.load(0);
  m.arbiter.set_busy(0, true, m.now_us);
  m.arbiter.requested(1, m.now_us, m.now_us + kSecond / 2);
  m.run_until(m.now_us + 5 * kSecond);
  EXPECT_TRUE(m.is(0, Presence::loaded)) << "the load would be too late for this deadline";
}

TEST(Arbiter, MinimumIdleTimeAndIdleTimeout) {
  std::vector<ModelRules> models = equal_models(2);
  models[0].min_idle_us = 4 * kSecond;
  models[1].idle_timeout_us = 30 * kSecond;
  Machine m = machine(10, models, 60 * kSecond);
  m.load(0);
  const std::int64_t used_us = m.now_us;
  m.arbiter.requested(0, used_us);
  m.arbiter.requested(1, used_us);
  m.run_until(used_us + 4 * kSecond - 1);
  EXPECT_TRUE(m.is(0, Presence::loaded));
  m.run_until(used_us + 6 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::loaded));
  m.run_until(m.now_us + 29 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::loaded));
  m.run_until(m.now_us + 3 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::unloaded));
}

TEST(Arbiter, CachesStayUntilTheirMemoryIsNeeded) {
  Machine m = machine(80, equal_models(8, 20, 10));
  for (std::size_t model = 0; model < 4; ++model) m.load(model);
  EXPECT_TRUE(m.is(0, Presence::unloaded));
  EXPECT_TRUE(m.arbiter.models()[0].has_cache);
  for (std::size_t model = 4; model < 8; ++model) m.load(model);
  EXPECT_FALSE(m.arbiter.models()[0].has_cache) << "caches of unloaded models have a quarter of the memory";
  std::int64_t kept = 0;
  for (const Arbiter::Model& model : m.arbiter.models())
    if (model.presence == Presence::unloaded && model.has_cache) kept += model.rules.cache_bytes;
  EXPECT_EQ(kept, 20);
  m.load(0);
  EXPECT_TRUE(m.arbiter.models()[0].has_cache);
}

TEST(Arbiter, ACacheIsDroppedIfTheWeightsOfOthersAreTooLittle) {
  Machine m = machine(40, {{.weight_bytes = 20, .cache_bytes = 10}, {.weight_bytes = 36}});
  m.load(0);
  m.load(1);
  EXPECT_EQ(m.dropped, std::vector<std::size_t>{0});
}

TEST(Arbiter, AnUnloadFreesACacheThatTheEngineDoesNotKeep) {
  Machine m = machine(40, {{.weight_bytes = 20, .cache_bytes = 10}, {.weight_bytes = 36}});
  m.keeps_caches = false;
  m.load(0);
  EXPECT_EQ(m.arbiter.used_bytes(), 30);
  m.load(1);
  EXPECT_TRUE(m.dropped.empty()) << "no cache is left";
  EXPECT_FALSE(m.arbiter.models()[0].has_cache);
  EXPECT_EQ(m.arbiter.used_bytes(), 36);
}

TEST(Arbiter, AClientSetsHowLongAModelStays) {
  std::vector<ModelRules> models = equal_models(3);
  models[1].idle_timeout_us = 10 * kSecond;
  models[2].pinned = true;
  Machine m = machine(100, models);
  for (const std::size_t model : {0, 1, 2}) m.load(model);
  m.arbiter.set_busy(0, true, m.now_us);
  for (const std::size_t model : {0, 2}) m.arbiter.keep(model, 0);
  m.arbiter.keep(1, -1);
  m.run_until(m.now_us + 30 * kSecond);
  EXPECT_TRUE(m.is(0, Presence::loaded)) << "it is busy";
  EXPECT_TRUE(m.is(1, Presence::loaded)) << "the client overrides the idle timeout";
  m.arbiter.set_busy(0, false, m.now_us);
  m.run_until(m.now_us + kSecond);
  EXPECT_TRUE(m.is(0, Presence::unloaded));
  EXPECT_TRUE(m.is(2, Presence::loaded)) << "it is pinned";
  m.load(0);
  m.run_until(m.now_us + 30 * kSecond);
  EXPECT_TRUE(m.is(0, Presence::loaded)) << "the wish ended with the unload";
  m.arbiter.keep(1, 5 * kSecond);
  m.arbiter.requested(1, m.now_us);
  const std::int64_t used_us = m.now_us;
  m.run_until(used_us + 4 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::loaded));
  m.run_until(used_us + 6 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::unloaded));
}

TEST(Arbiter, AModelThatIsNoLongerWantedIsNotLoaded) {
  Machine m = machine(10, equal_models(2));
  m.load(0);
  m.arbiter.set_busy(0, true, m.now_us);
  m.arbiter.requested(1, m.now_us);
  m.step();
  m.arbiter.withdrawn(1);
  EXPECT_FALSE(m.arbiter.waiting());
  m.run_until(m.now_us + 20 * kSecond);
  EXPECT_EQ(m.loads[1], 0);
}

TEST(Arbiter, UnloadByAClient) {
  Machine m = machine(10, equal_models(2));
  EXPECT_FALSE(m.arbiter.unload(0)) << "not loaded";
  m.load(0);
  m.arbiter.set_busy(0, true, m.now_us);
  EXPECT_FALSE(m.arbiter.unload(0)) << "busy";
  m.arbiter.set_busy(0, false, m.now_us);
  EXPECT_EQ(m.arbiter.unload(0).value(), (Action{Kind::unload, 0}));
  m.arbiter.unloaded(0, m.now_us);
  EXPECT_EQ(m.arbiter.used_bytes(), 0);
}

TEST(Arbiter, AFailedLoadFreesItsMemory) {
  Machine m = machine(10, equal_models(2));
  m.arbiter.requested(0, m.now_us);
  EXPECT_EQ(m.arbiter.decide(m.now_us).size(), 1u);
  m.arbiter.load_failed(0);
  EXPECT_FALSE(m.arbiter.waiting());
  m.load(1);
}

TEST(Arbiter, AModelThatIsLargerThanItsEstimateMakesOthersLeave) {
  Machine m = machine(30, equal_models(3));
  m.load(0);
  m.load(1);
  m.arbiter.requested(2, m.now_us);
  EXPECT_EQ(m.arbiter.decide(m.now_us), (std::vector<Action>{{Kind::load, 2}}));
  m.now_us += 10 * kSecond;
  m.arbiter.loaded(2, m.now_us, 18, 0, true);
  EXPECT_EQ(m.arbiter.decide(m.now_us), (std::vector<Action>{{Kind::unload, 0}}));
}

// A load measures 40 bytes for an estimate of 10: the model does not fit into 30.
TEST(Arbiter, AModelThatTurnsOutTooLargeEndsItsRequestsAndLeaves) {
  Machine m = machine(30, equal_models(2));
  m.arbiter.requested(0, m.now_us);
  ASSERT_EQ(m.arbiter.decide(m.now_us), (std::vector<Action>{{Kind::load, 0}}));
  m.now_us += kSecond;
  m.arbiter.loaded(0, m.now_us, 40, 0, true);
  EXPECT_FALSE(m.arbiter.fits(0));
  EXPECT_TRUE(m.arbiter.fits(1));
  m.arbiter.set_busy(0, true, m.now_us);
  m.arbiter.requested(1, m.now_us);
  m.now_us += 100 * kSecond;
  EXPECT_TRUE(m.arbiter.decide(m.now_us).empty()) << "its requests cannot wait for another load";
  m.arbiter.set_busy(0, false, m.now_us);
  EXPECT_EQ(m.arbiter.decide(m.now_us), (std::vector<Action>{{Kind::unload, 0}}));
  m.arbiter.unloaded(0, m.now_us);
  m.arbiter.requested(0, m.now_us - 100 * kSecond);
  EXPECT_EQ(m.arbiter.decide(m.now_us), (std::vector<Action>{{Kind::load, 1}})) << "model 0 is skipped";
}

TEST(Arbiter, SmallModelsDoNotTakeTheMemoryOfALargeOne) {
  Machine m =
      machine(30, {{.weight_bytes = 30}, {.weight_bytes = 10}, {.weight_bytes = 10}, {.weight_bytes = 10}});
  for (const std::size_t model : {1, 2, 3}) m.load(model);
  m.now_us += 10 * kSecond;
  for (const std::size_t model : {1, 2, 3}) m.arbiter.set_busy(model, true, m.now_us);
  m.arbiter.requested(0, m.now_us);
  EXPECT_EQ(m.arbiter.decide(m.now_us).size(), 3u);
  for (const std::size_t model : {1, 2}) {
    m.arbiter.unloaded(model, m.now_us);
    EXPECT_TRUE(m.arbiter.decide(m.now_us).empty()) << "the memory is reserved";
  }
  m.arbiter.unloaded(3, m.now_us);
  EXPECT_EQ(m.arbiter.decide(m.now_us), (std::vector<Action>{{Kind::load, 0}}));
}

TEST(Arbiter, AnExpiredDeadlineDoesNotHideALaterOne) {
  Machine m = machine(10, equal_models(2));
  m.arbiter.requested(0, 10, 20);
  m.arbiter.requested(0, 30, 90);
  EXPECT_EQ(m.arbiter.models()[0].deadline_us, 90);
  m.arbiter.requested(0, 40, 60);
  EXPECT_EQ(m.arbiter.models()[0].deadline_us, 60);
}

TEST(Arbiter, ADeadlineDoesNotEndTheTimeOfALoad) {
  Machine m = machine(10, equal_models(2), 20 * kSecond);
  m.load_us = 4 * kSecond;
  m.load(1);
  m.arbiter.requested(0, m.now_us);
  m.run_until(m.now_us + 30 * kSecond);
  const std::int64_t loaded_us = m.arbiter.models()[0].loaded_us;
  ASSERT_TRUE(m.is(0, Presence::loaded));
  m.now_us = loaded_us;
  m.arbiter.set_busy(0, true, m.now_us);
  m.arbiter.requested(1, m.now_us, m.now_us + 10 * kSecond);
  m.run_until(loaded_us + 4 * kSecond - 1);
  EXPECT_TRUE(m.is(0, Presence::loaded)) << "it stays as long as its load took";
  m.run_until(loaded_us + 10 * kSecond);
  EXPECT_TRUE(m.is(1, Presence::loaded));
}

TEST(Arbiter, ADeadlineOfAModelThatWasNeverLoadedIsIgnored) {
  Machine m = machine(10, equal_models(2), 20 * kSecond);
  m.load(0);
  m.arbiter.set_busy(0, true, m.now_us);
  m.arbiter.requested(1, m.now_us, m.now_us + 3 * kSecond);
  m.run_until(m.now_us + 3 * kSecond);
  EXPECT_TRUE(m.is(0, Presence::loaded));
}

TEST(Arbiter, AnEngineThatRefusesToUnloadStays) {
  Machine m = machine(10, equal_models(2));
  m.load(0);
  m.now_us += 10 * kSecond;
  m.arbiter.requested(1, m.now_us);
  ASSERT_EQ(m.arbiter.decide(m.now_us), (std::vector<Action>{{Kind::unload, 0}}));
  m.arbiter.unload_failed(0, m.now_us);
  EXPECT_TRUE(m.is(0, Presence::loaded));
  EXPECT_TRUE(m.arbiter.decide(m.now_us).empty()) << "it is not tried at once";
  EXPECT_EQ(m.arbiter.decide(m.now_us + 5 * kSecond), (std::vector<Action>{{Kind::unload, 0}}));
}

// Ten models always have work, and three fit. All get the same time, and most of the time is not spent on
// loads.
TEST(Arbiter, BusyModelsShareTheMemoryEqually) {
  Machine m = machine(30, equal_models(10));
  const std::int64_t end_us = 1000 * kSecond;
  m.run_until(end_us, [&] {
    for (std::size_t i = 0; i < 10; ++i) {
      m.arbiter.set_busy(i, true, m.now_us);
      m.arbiter.requested(i, m.now_us);
    }
  });
  std::int64_t all = 0;
  for (const std::int64_t us : m.present_us) all += us;
  EXPECT_GT(all, 3 * end_us * 3 / 4);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(static_cast<double>(m.present_us[i]), static_cast<double>(all) / 10,
                static_cast<double>(all) / 100)
        << i;
}

// Random requests of random models. Every request is served, and none waits for more than a round.
TEST(Arbiter, RandomLoadStarvesNoModel) {
  std::vector<ModelRules> models;
  std::mt19937 random(7);
  for (int i = 0; i < 10; ++i)
    models.push_back({.weight_bytes = 5 + static_cast<int>(random() % 10), .cache_bytes = 2});
  Machine m = machine(40, models);
  std::vector<std::int64_t> work_us(10);
  std::int64_t longest = 0;
  m.run_until(500 * kSecond, [&] {
    if (random() % 40 == 0) {
      const std::size_t model = random() % 10;
      work_us[model] += 20'000 * static_cast<std::int64_t>(random() % 50);
      m.arbiter.requested(model, m.now_us);
    }
    for (std::size_t i = 0; i < 10; ++i) {
      if (m.is(i, Presence::loaded)) work_us[i] = std::max<std::int64_t>(0, work_us[i] - 20'000);
      m.arbiter.set_busy(i, work_us[i] > 0, m.now_us);
      if (const std::int64_t since = m.arbiter.models()[i].wanted_us; since != 0)
        longest = std::max(longest, m.now_us - since);
    }
  });
  EXPECT_LT(longest, 10 * 7 * kSecond);
  m.run_until(m.now_us + 100 * kSecond, [&] {
    for (std::size_t i = 0; i < 10; ++i) {
      if (m.is(i, Presence::loaded)) work_us[i] = std::max<std::int64_t>(0, work_us[i] - 20'000);
      m.arbiter.set_busy(i, work_us[i] > 0, m.now_us);
    }
  });
  for (const std::int64_t left : work_us) EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace octavo::many
