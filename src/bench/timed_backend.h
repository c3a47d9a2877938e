// A backend whose operators are timed: what a step spends in each, and so what it spends outside all of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernels/ops.h"

namespace octavo {

inline constexpr std::array<std::string_view, 31> kOpNames = {"embed",
                                                              "add_norm",
                                                              "matmul",
                                                              "activate",
                                                              "keep_tail",
                                                              "route",
                                                              "grouped_matmul",
                                                              "combine",
                                                              "add_rows",
                                                              "angles",
                                                              "qkv_store",
                                                              "head_matmul",
                                                              "latent_store",
                                                              "choose_tokens",
                                                              "attention",
                                                              "gate",
                                                              "causal_conv",
                                                              "gated_delta",
                                                              "scan",
                                                              "channel_scan",
                                                              "wkv",
                                                              "predict_streams",
                                                              "correct_streams",
                                                              "match_size",
                                                              "gather_rows",
                                                              "scale_rows",
                                                              "clamp",
                                                              "pool",
                                                              "put_sampled",
                                                              "scale_logits",
                                                              "sample"};

struct OpTimes {
  std::array<std::atomic<std::int64_t>, kOpNames.size()> nanoseconds{};
  std::array<std::atomic<std::int64_t>, kOpNames.size()> calls{};
  std::atomic<std::int64_t> weight_bytes{
      0};  // of the matrices multiplied with since the last embedding: a step's
};

// One at a time: operators are plain functions, which find `times` in one place.
Backend timed_backend(Backend backend, OpTimes& times);

}  // namespace octavo
