// Tests with users who share a few system prompts. Policies that prefer cached prefixes must still keep all
// replicas busy.
#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

struct Outcome {
  std::int64_t ttft_p90_us = 0;
  std::int64_t cached_tokens = 0;
  int fewest = 0;  // requests at the replica that received the fewest
};

Outcome outcome(const std::string& policy, int replicas, int groups, double think_seconds) {
  const SimulationResult result =
      *simulate(fleet_of_users(replicas, policy), users_of_groups(replicas, groups, think_seconds));
  Outcome out{.ttft_p90_us = ttft_p90_us(result),
              .cached_tokens = result.samples.back().cached_tokens,
              .fewest = result.replicas[0].requests};
  for (const ReplicaUse& use : result.replicas) out.fewest = std::min(out.fewest, use.requests);
  return out;
}

TEST(Simulation, SharedPromptsLeaveNoReplicaIdle) {
  for (const auto& [replicas, groups, think_seconds] :
       {std::tuple(4, 1, 4.0), std::tuple(4, 3, 4.0), std::tuple(4, 64, 4.0), std::tuple(8, 1, 0.3),
        std::tuple(16, 2, 0.3), std::tuple(32, 3, 0.3), std::tuple(8, 16, 4.0), std::tuple(16, 1, 4.0),
        std::tuple(16, 3, 4.0)}) {
    const Outcome blind = outcome("round_robin", replicas, groups, think_seconds);
    const Outcome best = outcome("kv_aware", replicas, groups, think_seconds);
    for (const char* policy : {"kv_aware", "cache_aware"}) {
      SCOPED_TRACE(fmt::format("{}: {} replicas, {} prompts", policy, replicas, groups));
      const Outcome got = outcome(policy, replicas, groups, think_seconds);
      EXPECT_LE(got.ttft_p90_us, blind.ttft_p90_us);
      EXPECT_GE(got.cached_tokens, best.cached_tokens * 9 / 10);
      EXPECT_GT(got.fewest, 0);
    }
  }
}

}  // namespace
}  // namespace octavo::fleet
