// Cases of `octavo bench ops` for recurrent layers: gates, short convolutions, the delta rules of gated
// delta nets and RWKV-7, and the scans of Mamba.
#include <algorithm>
#include <numeric>
#include <vector>

#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr std::int64_t kWidth = 4;
constexpr std::int64_t kMamba2State = 128;  // state elements per column of a Mamba2 head
constexpr std::int64_t kMambaState = 16;    // state elements per channel of a Mamba mixer

// The tokens of a step are divided equally among the sequences.
struct Step {
  std::int64_t sequences, tokens;
};
constexpr Step kSteps[] = {{1, 1}, {16, 16}, {1, 512}};

class StepCases {
 public:
  static Result<StepCases> make(Backend& backend, const OpShapes& shapes, const Step& step,
                                const OpVisitor& visitor) {
    StepCases cases(backend, shapes, step, visitor);
    std::vector<std::int32_t> slots(static_cast<std::size_t>(step.sequences)), starts{0};
    std::iota(slots.begin(), slots.end(), 0);
    for (std::int64_t i = 1; i <= step.sequences; ++i)
      starts.push_back(static_cast<std::int32_t>(i * step.tokens / step.sequences));
    TRY(cases.slots_, on_device(backend, slots));
    TRY(cases.starts_, on_device(backend, starts));
    // The position is 1, because an operator at position 0 does not read the state.
    TRY(cases.positions_,
        on_device(backend, std::vector<std::int32_t>(static_cast<std::size_t>(step.tokens), 1)));
    TRY(cases.x_, cases.narrow(cases.n_ * cases.channels_));
    TRY(cases.y_, cases.narrow(cases.n_ * cases.channels_));
    TRY(cases.of_heads_, cases.floats(shapes.q_heads));
    TRY(cases.of_channels_, cases.floats(cases.inner_));
    TRY(cases.state_, cases.floats(step.sequences * cases.inner_ * std::max(shapes.head_dim, kMamba2State)));
    return cases;
  }

  void gate() {
    run("gate", 8 * inner_tokens(),
        [&] { ops_.gate(stream_, {.x = inner(x_), .gate = inner(x_), .y = inner(y_)}); });
  }

  Result<> causal_conv() {
    TRY(const Buffer weight, floats(channels_ * kWidth));
    TRY(const Buffer last, floats(step_.sequences * (kWidth - 1) * channels_));
    run("causal_conv", 2.0 * kWidth * static_cast<double>(n_ * channels_), [&] {
      ops_.causal_conv(stream_, {.x = x_.view(DType::bf16, {n_, channels_}),
                                 .weight = weight.view(DType::f32, {channels_, kWidth}),
                                 .state = last.view(DType::f32, {step_.sequences, kWidth - 1, channels_}),
                                 .plan = plan(),
                                 .y = y_.view(DType::bf16, {n_, channels_})});
    });
    return {};
  }

  Result<> gated_delta() {
    TRY(const Buffer ba, floats(n_ * 2 * s_.q_heads));
    run("gated_delta", 7 * inner_tokens() * static_cast<double>(s_.head_dim), [&] {
      ops_.gated_delta(stream_, {.qkv = x_.view(DType::bf16, {n_, channels_}),
                                 .key_heads = static_cast<int>(s_.kv_heads),
                                 .ba = ba.view(DType::f32, {n_, 2 * s_.q_heads}),
                                 .a_log = of_heads(),
                                 .dt_bias = of_heads(),
                                 .state = state_of_heads(s_.head_dim),
                                 .plan = plan(),
                                 .out = inner(y_)});
    });
    return {};
  }

  Result<> scans() {
    const std::int64_t scanned = inner_ + 2 * s_.kv_heads * kMamba2State;
    TRY(const Buffer xbc, narrow(n_ * scanned));
    TRY(const Buffer dt, narrow(n_ * inner_));
    run("scan", 5 * inner_tokens() * kMamba2State, [&] {
      ops_.scan(stream_, {.xbc = xbc.view(DType::bf16, {n_, scanned}),
                          .groups = static_cast<int>(s_.kv_heads),
                          .dt = dt.view(DType::bf16, {n_, s_.q_heads}),
                          .time_step = {.bias = of_heads()},
                          .a_log = of_heads(),
                          .d = of_heads(),
                          .state = state_of_heads(kMamba2State),
                          .plan = plan(),
                          .out = inner(y_)});
    });
    TRY(const Buffer rates, floats(inner_ * kMambaState));
    run("channel_scan", 7 * inner_tokens() * kMambaState, [&] {
      ops_.channel_scan(stream_, {.x = inner(x_),
                                  .bc = xbc.view(DType::bf16, {n_, 2 * kMambaState}),
                                  .dt = inner(dt),
                                  .time_step = {.bias = of_channels()},
                                  .a_log = rates.view(DType::f32, {inner_, kMambaState}),
                                  .d = of_channels(),
                                  .state = state_.view(DType::f32, {step_.sequences, kMambaState, inner_}),
                                  .plan = plan(),
                                  .out = inner(y_)});
    });
    return {};
  }

  Result<> wkv() {
    TRY(const Buffer decay, floats(n_ * inner_));
    const View narrow_inner = inner(x_), vector = of_channels();
    run("wkv", 9 * inner_tokens() * static_cast<double>(s_.head_dim), [&] {
      ops_.wkv(stream_, {.r = narrow_inner,
                         .k = narrow_inner,
                         .v = narrow_inner,
                         .decay = decay.view(DType::f32, {n_, inner_}),
                         .rate = narrow_inner,
                         .gate = narrow_inner,
                         .k_k = vector,
                         .k_a = vector,
                         .r_k = vector,
                         .eps = 1e-6F,
                         .norm = {NormKind::layer, 1e-3F, vector, vector},
                         .state = state_of_heads(s_.head_dim),
                         .plan = plan(),
                         .out = inner(y_)});
    });
    return {};
  }

 private:
  StepCases(Backend& backend, const OpShapes& shapes, const Step& step, const OpVisitor& visitor)
      : backend_(backend),
        ops_(backend.ops),
        stream_(*backend.stream),
        s_(shapes),
        step_(step),
        visitor_(visitor),
        n_(step.tokens),
        inner_(shapes.q_heads * shapes.head_dim),
        channels_(2 * shapes.kv_heads * shapes.head_dim + inner_) {}

  Result<Buffer> floats(std::int64_t count) {
    return on_device(backend_, std::vector<float>(static_cast<std::size_t>(count), 0.01f));
  }
  Result<Buffer> narrow(std::int64_t count) {
    return on_device(backend_, std::vector<std::uint16_t>(static_cast<std::size_t>(count), 0x3d3d));
  }
  void run(std::string_view operation, double operations, const std::function<void()>& call) {
    visitor_.measure_calls({.operation = fmt::format("{} {}", operation, s_.name),
                            .shape = fmt::format("{} tokens of {} sequences", step_.tokens, step_.sequences),
                            .format = "bf16",
                            .calls = 16,
                            .bytes = 0,
                            .operations = operations},
                           call);
  }
  double inner_tokens() const { return static_cast<double>(n_ * inner_); }
  View inner(const Buffer& buffer) const { return buffer.view(DType::bf16, {n_, inner_}); }
  View of_heads() const { return of_heads_.view(DType::f32, {s_.q_heads}); }
  View of_channels() const { return of_channels_.view(DType::f32, {inner_}); }
  View state_of_heads(std::int64_t rows) const {
    return state_.view(DType::f32, {step_.sequences, s_.q_heads, rows, s_.head_dim});
  }
  StatePlan plan() const {
    return {.slots = slots_.view(DType::i32, {step_.sequences}),
            .starts = starts_.view(DType::i32, {step_.sequences + 1}),
            .positions = positions_.view(DType::i32, {n_})};
  }

  Backend& backend_;
  const Ops& ops_;
  Stream& stream_;
  const OpShapes& s_;
  const Step& step_;
  const OpVisitor& visitor_;
  std::int64_t n_, inner_, channels_;
  Buffer slots_, starts_, positions_, x_, y_, of_heads_, of_channels_, state_;
};

}  // namespace

Result<> recurrent_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  for (const Step& step : kSteps) {
    TRY(StepCases cases, StepCases::make(backend, shapes, step, visitor));
    cases.gate();
    TRY_VOID(cases.causal_conv());
    TRY_VOID(cases.gated_delta());
    TRY_VOID(cases.scans());
    TRY_VOID(cases.wkv());
  }
  return {};
}

}  // namespace octavo
