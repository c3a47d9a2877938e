// A backend whose operators are timed: what a step spends in each, and so what it spends outside all of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernels/ops.h"

namespace octavo {

// In the order of operators/list.h.
#define OCTAVO_OPERATOR_NAME(name, Args, backends) #name,
inline constexpr auto kOpNames = std::to_array<std::string_view>({OCTAVO_OPERATORS(OCTAVO_OPERATOR_NAME)});
#undef OCTAVO_OPERATOR_NAME

struct OpTimes {
  std::array<std::atomic<std::int64_t>, kOpNames.size()> nanoseconds{};
  std::array<std::atomic<std::int64_t>, kOpNames.size()> calls{};
  // Matrices that the step has multiplied with since the last embedding; only experts that have tokens count.
  std::atomic<std::int64_t> weight_bytes{0};
};

// One at a time: operators are plain functions, which find `times` in one place.
Backend timed_backend(Backend backend, OpTimes& times);

}  // namespace octavo
