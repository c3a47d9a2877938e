// Fleets with one slow replica. Its users must move to faster replicas, although it has cached their
// prompts.
#include <gtest/gtest.h>

#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

// Conversations with a long cached prefix, short turns, and answers of about a second.
SimulationResult with_slow_replica(const std::string& policy, int replicas, double slowdown, double users) {
  const TrafficShape shape{.users = users * replicas,
                           .turns = 8,
                           .think_seconds = 2,
                           .groups = 64,
                           .group_tokens = 1024,
                           .input_tokens = 32,
                           .output_tokens = 100,
                           .spread = 0.3};
  SimulationOptions options = fleet_of_users(replicas, policy);
  options.scheduler.num_blocks = 20'000;
  options.slowdowns = {slowdown};
  return *simulate(options, *generate_traffic(shape, 16, 0));
}

TEST(SlowReplicas, TheirStepsTakeLonger) {
  SimulationOptions options = small_fleet(2, "round_robin");
  options.slowdowns = {8};
  const SimulationResult result = *simulate(options, conversations(2, 1, 1'000'000));
  const auto took = [&](std::size_t i) { return result.answers[i].last_us - result.answers[i].sent_us; };
  EXPECT_EQ(took(0), 8 * took(1));
}

TEST(SlowReplicas, KvAwareIsNoWorseThanRoundRobin) {
  for (const int replicas : {4, 8, 16})
    for (const double slowdown : {2, 4, 8})
      for (const double users : {1, 8}) {
        SCOPED_TRACE(
            fmt::format("{} replicas, one {} times slower, {} users each", replicas, slowdown, users));
        const SimulationResult blind = with_slow_replica("round_robin", replicas, slowdown, users);
        const SimulationResult aware = with_slow_replica("kv_aware", replicas, slowdown, users);
        EXPECT_LE(ttft_p90_us(aware), ttft_p90_us(blind));
        EXPECT_LE(aware.duration_us, blind.duration_us);
      }
}

// The time of a step varies with the load. A loaded replica must not count as slow.
TEST(SlowReplicas, EqualOnesKeepTheirConversations) {
  const Trace trace = users_of_groups(8, 64, 2);
  const SimulationResult blind = *simulate(fleet_of_users(8, "round_robin"), trace);
  const SimulationResult aware = *simulate(fleet_of_users(8, "kv_aware"), trace);
  EXPECT_GT(aware.samples.back().cached_tokens, blind.samples.back().cached_tokens * 5 / 4);
  EXPECT_LT(ttft_p90_us(aware), ttft_p90_us(blind) * 2 / 3);
}

}  // namespace
}  // namespace octavo::fleet
