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
  int computed_until = 0;  // tokens before this position have been computed
};

}  // namespace octavo
