// The cost of an answer so far.
#pragma once

#include <algorithm>
#include <cstdint>

#include "request/answer_cost.h"

namespace octavo {

// Blocks that an answer holds, and the time for which they are counted.
struct BlockTime {
  int blocks = 0;
  std::int64_t since_ns = 0;

  // Adds the time up to now_ns to the cost.
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

// Makes integers of a sum of fractions.
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
