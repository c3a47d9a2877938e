#include "local/reloadable_engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace octavo {
namespace {

// Returns its number as request id. The engine that is loaded first has number 1.
class CountedEngine final : public EngineClient {
 public:
  CountedEngine(int number, int& alive, int vocab_size)
      : number_(number), alive_(alive), vocab_size_(vocab_size) {
    ++alive_;
  }
  ~CountedEngine() override { --alive_; }
  EngineInfo info() const override { return {.vocab_size = vocab_size_, .max_model_len = 64}; }
  Result<RequestId> submit(Request, std::shared_ptr<OutputSink>) override {
    return static_cast<RequestId>(number_);
  }
  void abort(RequestId) override {}
  void reset_prefix_cache() override {}
  void sleep(int level, Done done) override {
    slept = level;
    done({});
  }
  std::vector<EngineStats> stats() const override {
    EngineStats stats;
    stats.blocks.total = 8;
    stats.blocks.cached = 3;
    return {stats};
  }
  void drain() override { drained = true; }

  static inline int slept = 0;
  static inline bool drained = false;

 private:
  int number_;
  int& alive_;
  int vocab_size_;
};

struct Loaded {
  int times = 0, alive = 0, vocab_size = 10;
  std::string problem{};
  std::unique_ptr<EngineClient> engine{};

  Loaded() {
    engine = ReloadableEngine::start([this]() -> Result<std::unique_ptr<EngineClient>> {
               if (!problem.empty()) return failure(ErrorCode::io, "{}", problem);
               return std::make_unique<CountedEngine>(++times, alive, vocab_size);
             }).value();
    CountedEngine::slept = 0;
    CountedEngine::drained = false;
  }
  // level 0: calls wake_up().
  Result<> change(int level) {
    Result<> outcome = failure(ErrorCode::internal, "nothing was told");
    const auto done = [&](Result<> result) { outcome = std::move(result); };
    level == 0 ? engine->wake_up(done) : engine->sleep(level, done);
    return outcome;
  }
};

TEST(ReloadableEngine, LevelOneIsTheEnginesOwn) {
  Loaded loaded;
  EXPECT_TRUE(loaded.change(1));
  EXPECT_EQ(CountedEngine::slept, 1);
  EXPECT_EQ(loaded.engine->stats().front().condition.sleep_level, 1);
  EXPECT_EQ(loaded.alive, 1);
  EXPECT_TRUE(loaded.change(0));
  EXPECT_EQ(loaded.engine->stats().front().condition.sleep_level, 0);
  EXPECT_EQ(loaded.times, 1);
}

TEST(ReloadableEngine, LevelTwoEndsItAndWakingLoadsItAnew) {
  Loaded loaded;
  EXPECT_EQ(loaded.engine->submit({}, nullptr).value(), 1);
  EXPECT_TRUE(loaded.change(2));
  EXPECT_TRUE(CountedEngine::drained);
  EXPECT_EQ(loaded.alive, 0);
  EXPECT_EQ(loaded.engine->submit({}, nullptr).error().code, ErrorCode::unavailable);
  EXPECT_EQ(loaded.engine->info().vocab_size, 10);
  const EngineStats asleep = loaded.engine->stats().front();
  EXPECT_EQ(asleep.condition.sleep_level, 2);
  EXPECT_EQ(asleep.blocks.cached, 0);
  EXPECT_EQ(asleep.blocks.total, 8);
  EXPECT_TRUE(loaded.change(2)) << "it sleeps already";
  EXPECT_FALSE(loaded.change(1));
  loaded.engine->abort(1);
  loaded.engine->reset_prefix_cache();
  loaded.engine->drain();
  EXPECT_TRUE(loaded.change(0));
  EXPECT_TRUE(loaded.change(0)) << "it is awake already";
  EXPECT_EQ(loaded.engine->submit({}, nullptr).value(), 2);
  EXPECT_EQ(loaded.alive, 1);
}

TEST(ReloadableEngine, WhatCannotBeLoadedIsToldAndMayBeTriedAgain) {
  Loaded loaded;
  ASSERT_TRUE(loaded.change(2));
  loaded.problem = "does not exist";
  EXPECT_EQ(loaded.change(0).error().message, "does not exist");
  loaded.problem.clear();
  loaded.vocab_size = 11;
  EXPECT_EQ(loaded.change(0).error().field, "model");
  EXPECT_EQ(loaded.alive, 0);
  loaded.vocab_size = 10;
  EXPECT_TRUE(loaded.change(0));
  EXPECT_TRUE(loaded.engine->submit({}, nullptr));
}

}  // namespace
}  // namespace octavo
