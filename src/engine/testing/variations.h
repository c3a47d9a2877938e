// For tests: sends the same requests to engines with different settings, and compares the outputs.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "model/cache_layout.h"
#include "model/model.h"

namespace octavo {

struct Variation {
  const char* name;
  int threads, tokens, sequences;  // limits of a step
  std::optional<int> blocks = {};  // if there are few blocks, sequences are preempted
  bool speculates = false;
};

// Returns a number of blocks that causes preemptions if no group has a window. Returns nullopt for models
// without attention, which need no blocks.
inline std::optional<int> few_blocks(const std::string& model_dir) {
  const CacheLayout layout = cache_layout(load_spec(model_dir).value(), {.window_groups = false});
  const auto groups = std::ssize(layout.groups);
  return groups > 0 ? std::optional(6 * static_cast<int>(groups)) : std::nullopt;
}

// Checks that each variation returns the same bits as an engine that gets the requests one by one. Each
// variation runs in each weight format, and twice, so that the second run uses the prefix cache.
inline void expect_the_same_answers(EngineOptions options, int requests,
                                    std::span<const Variation> variations) {
  for (const char* dtype : {"auto", "float32"}) {
    options.model.dtype = dtype;
    options.device.threads = 1;
    options.schedule.max_num_seqs = 1;
    const std::vector<CollectedAnswer> alone = answers_of(*load_engine(options).value(), requests);
    EXPECT_EQ(alone[4].tokens.size(), 16u);
    for (const Variation& v : variations) {
      EngineOptions varied = options;
      varied.device.threads = v.threads;
      varied.schedule.max_num_batched_tokens = v.tokens;
      varied.schedule.max_num_seqs = v.sequences;
      varied.cache.num_blocks = v.blocks;
      if (v.speculates) varied.speculation = SpeculativeOptions{};
      const auto engine = load_engine(varied).value();
      // Preemption depends on arrival times, so the test repeats until a sequence was preempted.
      const auto preempted = [&] { return engine->own_stats().preemptions > 0; };
      for (int round = 0; round < 2 || (v.blocks && !preempted() && round < 100); ++round)
        EXPECT_EQ(answers_of(*engine, requests), alone) << v.name << ", " << dtype << ", round " << round;
      EXPECT_EQ(preempted(), v.blocks.has_value()) << v.name;
    }
  }
}

// Checks that the cached blocks of some requests serve the same requests again, with equal outputs.
inline void expect_shared_prefixes(const EngineOptions& options, int requests) {
  const auto engine = load_engine(options).value();
  const std::vector<CollectedAnswer> cold = answers_of(*engine, requests);
  const std::int64_t hits = engine->own_stats().prefix_cache.hits;
  EXPECT_EQ(answers_of(*engine, requests), cold);
  EXPECT_GT(engine->own_stats().prefix_cache.hits, hits);
}

}  // namespace octavo
