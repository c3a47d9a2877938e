// Users who share a few system prompts: policies that use prefixes must keep all replicas busy.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fleet/simulate/simulation.h"
#include "fleet/simulate/traffic_shape.h"

namespace octavo::fleet {
namespace {

struct Outcome {
  std::int64_t ttft_p90_us = 0;
  std::int64_t cached_tokens = 0;
  int fewest = 0;  // smallest number of requests at a replica
};

// Simulates 16 users per replica, with five turns each.
Outcome outcome(const std::string& policy, int replicas, int groups, double think_seconds) {
  const TrafficShape shape{.users = 16.0 * replicas,
                           .turns = 5,
                           .think_seconds = think_seconds,
                           .groups = static_cast<double>(groups),
                           .group_tokens = 2048,
                           .input_tokens = 512,
                           .output_tokens = 150,
                           .spread = 0.3};
  SimulationOptions options{.replicas = replicas, .policy = policy};
  options.scheduler.num_blocks = 6000;
  options.scheduler.max_model_len = 16'384;
  options.timing = {.fixed_us = 8000, .token_us = 90, .kv_token_us = 0.5};
  const SimulationResult result = *simulate(options, *generate_traffic(shape, 512, 0));
  std::vector<std::int64_t> ttft_us;
  for (const traffic::AnswerTimes& r : result.answers) ttft_us.push_back(r.first_us - r.sent_us);
  std::ranges::sort(ttft_us);
  Outcome out{.ttft_p90_us = ttft_us[ttft_us.size() * 9 / 10],
              .cached_tokens = result.samples.back().cached_tokens,
              .fewest = result.replicas[0].requests};
  for (const ReplicaUse& use : result.replicas) out.fewest = std::min(out.fewest, use.requests);
  return out;
}

TEST(Simulation, SharedPromptsLeaveNoReplicaIdle) {
  for (const auto& [replicas, groups, think_seconds] :
       {std::tuple(4, 1, 4.0), std::tuple(4, 3, 4.0), std::tuple(4, 64, 4.0), std::tuple(8, 1, 0.3),
        std::tuple(16, 2, 0.3), std::tuple(8, 16, 4.0), std::tuple(16, 1, 4.0), std::tuple(16, 3, 4.0)}) {
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
