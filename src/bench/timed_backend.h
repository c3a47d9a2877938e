// A backend that measures the time in each operator and the time between operators, for `octavo bench
// step`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernels/ops.h"

namespace octavo {

// Names of the operators, in the order of operators/list.h.
#define OCTAVO_OPERATOR_NAME(name, Args, backends) #name,
inline constexpr auto kOpNames = std::to_array<std::string_view>({OCTAVO_OPERATORS(OCTAVO_OPERATOR_NAME)});
#undef OCTAVO_OPERATOR_NAME

struct OpTimes {
  std::array<std::atomic<std::int64_t>, kOpNames.size()> nanoseconds{};
  std::array<std::atomic<std::int64_t>, kOpNames.size()> calls{};
  // Bytes of the matrices that were used since the last embedding, except matrices of experts without
  // tokens.
  std::atomic<std::int64_t> weight_bytes{0};
};

// At most one instance may exist, because the operators are plain functions that share one `times`.
Backend timed_backend(Backend backend, OpTimes& times);

}  // namespace octavo
