// Tests two ranks (threads) that move experts. Most tokens use the same few experts.
#include "engine/execute/expert_balancer.h"

#include <gtest/gtest.h>

#include <thread>

#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"
#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

struct Outcome {
  std::vector<float> logits;
  std::vector<ExpertPlacement> placements;
};

constexpr int kRanks = 2;

// Runs the same two tokens again and again, one per step, so that the same experts are used.
Outcome run(const golden::Golden& golden, const ExpertBalancing& options) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(kRanks)).value();
  std::vector<std::int32_t> text;
  for (std::size_t i = 0; i < 40; ++i) text.push_back(golden.ids[i % 2]);
  Outcome runs[kRanks];
  const auto run_rank = [&](int rank) {
    Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
    const auto model =
        Model::load(golden.directory, backend,
                    {.threads = 1,
                     .shard = {rank, kRanks, true, static_cast<std::uint16_t>(options.redundant_experts)}})
            .value();
    RankGroups groups;
    groups.tensor = std::make_unique<SharedMemoryGroup>(
        memory.bytes(), SharedMemoryGroupOptions{.rank = rank, .size = kRanks, .check = {}, .spin = false});
    const auto balancer = ExpertBalancer::create(options, *model, *groups.tensor).value();
    const auto before_step = [&] {
      if (options.enabled) balancer->before_step();
    };
    runs[rank].logits =
        golden::run(*model, backend, text, {1}, {.dtype = model->activation}, {}, groups, before_step)
            .value();
    EXPECT_TRUE(groups.tensor->status());
    for (const Layer& layer : model->network.layers)
      for (const Block* block : layer.blocks())
        if (const ExpertSpread* spread = block->experts_over_ranks())
          runs[rank].placements.push_back(spread->placement());
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(run_rank, rank);
  }
  EXPECT_EQ(runs[0].placements, runs[1].placements);
  return runs[0];
}

class ExpertBalancers : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, ExpertBalancers, testing::Values("qwen3_moe", "deepseek_v3", "qwen3_next"));

TEST_P(ExpertBalancers, ExpertsMoveAndNoNumberChanges) {
  const golden::Golden golden = golden::read(GetParam());
  const Outcome still = run(golden, {});
  int moves = 0;  // 0 is possible for one setting, because the load may already be balanced
  for (const bool use_async : {false, true})
    for (const int redundant : {0, 2}) {
      const Outcome moved = run(golden, {.enabled = true,
                                         .window_size = 5,
                                         .step_interval = 6,
                                         .redundant_experts = redundant,
                                         .log_balancedness = true,
                                         .use_async = use_async});
      EXPECT_EQ(moved.logits, still.logits) << redundant << " redundant";
      const ExpertPlacement first =
          first_placement(*std::ranges::max_element(moved.placements[0]) + 1, redundant);
      moves += std::ranges::any_of(moved.placements, [&](const ExpertPlacement& p) { return p != first; });
    }
  EXPECT_GT(moves, 0);
}

}  // namespace
}  // namespace octavo
