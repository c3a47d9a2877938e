// A backend whose operators are timed: what a step spends in each, and so what it spends outside all of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernels/ops.h"

namespace octavo {

// The operators, in the order of Ops: timed_backend.cc checks that none is left out.
#define OCTAVO_OPERATORS(X) \
  X(embed) X(add_norm) X(matmul) X(activate) X(keep_tail) X(scale_rows) X(clamp) X(route) \
  X(grouped_matmul) X(combine) X(add_rows) X(angles) X(qkv_store) X(head_matmul) X(latent_store) \
  X(choose_tokens) X(attention) X(turn_ends) X(store_rows) X(gate) X(causal_conv) X(gated_delta) \
  X(scan) X(channel_scan) X(wkv) X(compress) X(collapse_streams) X(expand_streams) X(predict_streams) \
  X(correct_streams) X(match_size) X(gather_rows) X(pool) X(put_sampled) X(scale_logits) X(sample)

#define OCTAVO_OPERATOR_NAME(name) #name,
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
