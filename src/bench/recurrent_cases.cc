// Recurrent layers: gates, the short convolution, the delta rules of gated nets and RWKV-7, the scans of
// Mamba.
#include <numeric>
#include <vector>

#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr std::int64_t kWidth = 4;          // of the convolution
constexpr std::int64_t kMamba2State = 128;  // per column of a Mamba2 head
constexpr std::int64_t kMambaState = 16;    // per channel of a Mamba

// The tokens of a step, distributed evenly over its sequences.
struct Step {
  std::int64_t sequences, tokens;
};
constexpr Step kSteps[] = {{1, 1}, {16, 16}, {1, 512}};

void measure(const OpVisitor& visitor, const OpShapes& s, std::string_view operation, const Step& step,
             double operations, std::function<void()> call) {
  OpCase c{.operation = fmt::format("{} {}", operation, s.name),
           .shape = fmt::format("{} tokens of {} sequences", step.tokens, step.sequences),
           .format = "bf16",
           .calls = 16,
           .bytes = 0,
           .operations = operations};
  if (!visitor.wanted(c)) return;
  c.run = [&c, call = std::move(call)] {
    for (int i = 0; i < c.calls; ++i) call();
  };
  visitor.measure(c);
}

Result<> step_cases(Backend& backend, const OpShapes& s, const Step& step, const OpVisitor& visitor) {
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
  const std::int64_t n = step.tokens, inner = s.q_heads * s.head_dim;
  const std::int64_t channels = 2 * s.kv_heads * s.head_dim + inner;
  std::vector<std::int32_t> slots(static_cast<std::size_t>(step.sequences)), starts{0};
  std::iota(slots.begin(), slots.end(), 0);
  for (std::int64_t i = 1; i <= step.sequences; ++i)
    starts.push_back(static_cast<std::int32_t>(i * n / step.sequences));
  const std::vector<std::int32_t> positions(static_cast<std::size_t>(n), 1);  // states are read
  TRY(const Buffer slot_memory, on_device(backend, slots));
  TRY(const Buffer start_memory, on_device(backend, starts));
  TRY(const Buffer position_memory, on_device(backend, positions));
  const StatePlan plan{.slots = slot_memory.view(DType::i32, {step.sequences}),
                       .starts = start_memory.view(DType::i32, {step.sequences + 1}),
                       .positions = position_memory.view(DType::i32, {n})};
  const auto floats = [&](std::int64_t count) {
    return on_device(backend, std::vector<float>(static_cast<std::size_t>(count), 0.01f));
  };
  const auto narrow = [&](std::int64_t count) {
    return on_device(backend, std::vector<std::uint16_t>(static_cast<std::size_t>(count), 0x3d3d));
  };
  TRY(const Buffer x, narrow(n * channels));
  TRY(const Buffer y, narrow(n * channels));
  const View wide = x.view(DType::bf16, {n, channels}), out = y.view(DType::bf16, {n, inner});

  const auto inner_tokens = static_cast<double>(n * inner);
  measure(visitor, s, "gate", step, 8 * inner_tokens, [&] {
    ops.gate(stream,
             {.x = x.view(DType::bf16, {n, inner}), .gate = x.view(DType::bf16, {n, inner}), .y = out});
  });

  TRY(const Buffer weight, floats(channels * kWidth));
  TRY(const Buffer last, floats(step.sequences * (kWidth - 1) * channels));
  measure(visitor, s, "causal_conv", step, 2.0 * kWidth * static_cast<double>(n * channels), [&] {
    ops.causal_conv(stream, {.x = wide,
                             .weight = weight.view(DType::f32, {channels, kWidth}),
                             .state = last.view(DType::f32, {step.sequences, kWidth - 1, channels}),
                             .plan = plan,
                             .y = y.view(DType::bf16, {n, channels})});
  });

  TRY(const Buffer ba, floats(n * 2 * s.q_heads));
  TRY(const Buffer of_heads, floats(s.q_heads));
  TRY(const Buffer state, floats(step.sequences * inner * s.head_dim));
  measure(visitor, s, "gated_delta", step, 7 * inner_tokens * static_cast<double>(s.head_dim), [&] {
    ops.gated_delta(stream,
                    {.qkv = wide,
                     .key_heads = static_cast<int>(s.kv_heads),
                     .ba = ba.view(DType::f32, {n, 2 * s.q_heads}),
                     .a_log = of_heads.view(DType::f32, {s.q_heads}),
                     .dt_bias = of_heads.view(DType::f32, {s.q_heads}),
                     .state = state.view(DType::f32, {step.sequences, s.q_heads, s.head_dim, s.head_dim}),
                     .plan = plan,
                     .out = out});
  });

  const std::int64_t scanned = inner + 2 * s.kv_heads * kMamba2State;
  TRY(const Buffer xbc, narrow(n * scanned));
  TRY(const Buffer dt, narrow(n * inner));
  TRY(const Buffer heads, floats(step.sequences * inner * kMamba2State));
  measure(visitor, s, "scan", step, 5 * inner_tokens * kMamba2State, [&] {
    ops.scan(stream, {.xbc = xbc.view(DType::bf16, {n, scanned}),
                      .groups = static_cast<int>(s.kv_heads),
                      .dt = dt.view(DType::bf16, {n, s.q_heads}),
                      .time_step = {.bias = of_heads.view(DType::f32, {s.q_heads})},
                      .a_log = of_heads.view(DType::f32, {s.q_heads}),
                      .d = of_heads.view(DType::f32, {s.q_heads}),
                      .state = heads.view(DType::f32, {step.sequences, s.q_heads, kMamba2State, s.head_dim}),
                      .plan = plan,
                      .out = out});
  });

  TRY(const Buffer of_channels, floats(inner));
  TRY(const Buffer rates, floats(inner * kMambaState));
  measure(visitor, s, "channel_scan", step, 7 * inner_tokens * kMambaState, [&] {
    ops.channel_scan(stream, {.x = x.view(DType::bf16, {n, inner}),
                              .bc = xbc.view(DType::bf16, {n, 2 * kMambaState}),
                              .dt = dt.view(DType::bf16, {n, inner}),
                              .time_step = {.bias = of_channels.view(DType::f32, {inner})},
                              .a_log = rates.view(DType::f32, {inner, kMambaState}),
                              .d = of_channels.view(DType::f32, {inner}),
                              .state = heads.view(DType::f32, {step.sequences, kMambaState, inner}),
                              .plan = plan,
                              .out = out});
  });

  TRY(const Buffer decay, floats(n * inner));
  const View narrow_inner = x.view(DType::bf16, {n, inner}), vector = of_channels.view(DType::f32, {inner});
  measure(visitor, s, "wkv", step, 9 * inner_tokens * static_cast<double>(s.head_dim), [&] {
    ops.wkv(stream, {.r = narrow_inner,
                     .k = narrow_inner,
                     .v = narrow_inner,
                     .decay = decay.view(DType::f32, {n, inner}),
                     .rate = narrow_inner,
                     .gate = narrow_inner,
                     .k_k = vector,
                     .k_a = vector,
                     .r_k = vector,
                     .eps = 1e-6F,
                     .norm = {NormKind::layer, 1e-3F, vector, vector},
                     .state = state.view(DType::f32, {step.sequences, s.q_heads, s.head_dim, s.head_dim}),
                     .plan = plan,
                     .out = out});
  });
  return {};
}

}  // namespace

Result<> recurrent_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  for (const Step& step : kSteps) TRY_VOID(step_cases(backend, shapes, step, visitor));
  return {};
}

}  // namespace octavo
