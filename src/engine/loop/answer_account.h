// Accumulates the cost of one answer. StepCosts fills it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "request/answer_cost.h"

namespace octavo {

// Adds up number of blocks * time. `blocks` is the current number of blocks of the answer, and since_ns is
// the time up to which the cost is counted.
struct BlockTime {
  int blocks = 0;
  std::int64_t since_ns = 0;

  // Adds the time from since_ns to now_ns to the cost.
  void settle(std::int64_t now_ns, AnswerCost& cost) {
    const std::int64_t passed = std::max<std::int64_t>(0, now_ns - since_ns);
    if (blocks > 0) cost[CostUnit::kv_block_nanoseconds] += blocks * passed;
    since_ns += passed;
  }
  void hold(int count, std::int64_t now_ns, AnswerCost& cost) {
    settle(now_ns, cost);
    blocks = count;
  }
};

// Splits off the integer part of a growing sum.
struct WholeUnits {
  double rest = 0;
  std::int64_t take(double amount) {
    rest += amount;
    const auto whole = static_cast<std::int64_t>(rest);
    rest -= static_cast<double>(whole);
    return whole;
  }
};

struct AnswerAccount {
  AnswerCost cost{};
  BlockTime blocks{};
  WholeUnits energy{};
  int prompt_tokens = 0;
  int known_tokens = 0;    // prompt tokens, and output tokens of an earlier engine
  int computed_until = 0;  // tokens before this position have been computed

  // Counts the tokens of a step: `count` tokens from position `first` on.
  void add_tokens(int first, int count) {
    const int end = first + count;
    if (first < computed_until || first < known_tokens) {
      const int fresh = std::max(first, computed_until);
      const int again = std::clamp(computed_until - first, 0, count);
      cost[CostUnit::prompt_tokens_computed] +=
          std::clamp(prompt_tokens - fresh, 0, std::max(0, end - fresh));
      cost[CostUnit::tokens_recomputed] +=
          again + std::max(0, std::min(end, known_tokens) - std::max(fresh, prompt_tokens));
    }
    computed_until = std::max(computed_until, end);
  }
};

}  // namespace octavo
