// For tests: a small fleet, and traces of conversations in which each prompt contains all earlier turns.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fleet/simulate/simulation.h"
#include "fleet/simulate/traffic_shape.h"

namespace octavo::fleet {

inline SimulationOptions small_fleet(int replicas, std::string policy) {
  SimulationOptions options{.replicas = replicas, .policy = std::move(policy)};
  options.scheduler.num_blocks = 4096;
  options.scheduler.max_model_len = 16'384;
  options.scheduler.max_steps_in_flight = 1;
  options.timing = {.fixed_us = 1000, .token_us = 10, .kv_token_us = 0.01};
  return options;
}

// Each of the concurrent users sends a turn every `pause_us`. Each turn adds one block to the prompt.
inline Trace conversations(std::uint32_t users, std::uint32_t turns, std::int64_t pause_us) {
  Trace trace{.block_limit = users * (turns + 1)};
  for (std::uint32_t turn = 0; turn < turns; ++turn)
    for (std::uint32_t user = 0; user < users; ++user) {
      trace.requests.push_back({.arrival_us = turn * pause_us + user * pause_us / users,
                                .input_tokens = static_cast<int>(turn + 2) * trace.block_tokens,
                                .output_tokens = 20,
                                .first_block = static_cast<std::uint32_t>(trace.blocks.size())});
      for (std::uint32_t block = 0; block < turn + 2; ++block)
        trace.blocks.push_back(user * (turns + 1) + block);
    }
  return trace;
}

// 16 users per replica with five turns each. The users are in groups with a common system prompt. A step
// takes at least 8 ms.
inline Trace users_of_groups(int replicas, int groups, double think_seconds) {
  const TrafficShape shape{.users = 16.0 * replicas,
                           .turns = 5,
                           .think_seconds = think_seconds,
                           .groups = static_cast<double>(groups),
                           .group_tokens = 2048,
                           .input_tokens = 512,
                           .output_tokens = 150,
                           .spread = 0.3};
  return *generate_traffic(shape, 512, 0);
}

inline SimulationOptions fleet_of_users(int replicas, std::string policy) {
  SimulationOptions options{.replicas = replicas, .policy = std::move(policy)};
  options.scheduler.num_blocks = 6000;
  options.scheduler.max_model_len = 16'384;
  options.timing = {.fixed_us = 8000, .token_us = 90, .kv_token_us = 0.5};
  return options;
}

inline std::int64_t ttft_p90_us(const SimulationResult& result) {
  std::vector<std::int64_t> ttft_us;
  for (const traffic::AnswerTimes& answer : result.answers)
    ttft_us.push_back(answer.first_us - answer.sent_us);
  std::ranges::sort(ttft_us);
  return ttft_us[ttft_us.size() * 9 / 10];
}

}  // namespace octavo::fleet
