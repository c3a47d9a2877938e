#include "bench/timed_backend.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "base/clock.h"

namespace octavo {
namespace {

struct Timing {
  const Ops* ops = nullptr;
  OpTimes* times = nullptr;
  std::optional<Ops> timed;
  std::optional<std::int64_t> step_bytes;  // since the embedding of a step that is not sampled yet
};
Timing timing;

template <std::size_t kName, auto kOp, class Args>
void timed(Stream& stream, const Args& args) {
  const std::int64_t begin = now_ns();
  (timing.ops->*kOp)(stream, args);
  timing.times->nanoseconds[kName] += now_ns() - begin;
  ++timing.times->calls[kName];
  if constexpr (std::is_same_v<Args, EmbedArgs>) timing.step_bytes = 0;
  if constexpr (std::is_same_v<Args, MatmulArgs> || std::is_same_v<Args, HeadMatmulArgs>)
    if (timing.step_bytes) *timing.step_bytes += static_cast<std::int64_t>(args.w.bytes());
  if constexpr (std::is_same_v<Args, SampleArgs>)
    if (timing.step_bytes) timing.times->weight_bytes = *std::exchange(timing.step_bytes, std::nullopt);
}

template <std::size_t kName, auto kOp, class Args>
void replace(Ops& ops, Op<Args> Ops::*) {
  ops.*kOp = timed<kName, kOp, Args>;
}

template <auto... kOps, std::size_t... kNames>
void replace_all(Ops& ops, std::index_sequence<kNames...>) {
  (replace<kNames, kOps>(ops, kOps), ...);
}

}  // namespace

Backend timed_backend(Backend backend, OpTimes& times) {
  timing.ops = &backend.ops;
  timing.times = &times;
  timing.timed = backend.ops;
  replace_all<&Ops::embed, &Ops::add_norm, &Ops::matmul, &Ops::activate, &Ops::keep_tail, &Ops::route,
              &Ops::grouped_matmul, &Ops::combine, &Ops::add_rows, &Ops::angles, &Ops::qkv_store,
              &Ops::head_matmul, &Ops::latent_store, &Ops::choose_tokens, &Ops::attention, &Ops::gate,
              &Ops::causal_conv, &Ops::gated_delta, &Ops::scan, &Ops::channel_scan, &Ops::wkv,
              &Ops::predict_streams, &Ops::correct_streams, &Ops::match_size, &Ops::gather_rows,
              &Ops::scale_rows, &Ops::clamp, &Ops::pool, &Ops::put_sampled, &Ops::scale_logits, &Ops::sample>(
      *timing.timed, std::make_index_sequence<kOpNames.size()>{});
  return {backend.name, *timing.timed, std::move(backend.device), std::move(backend.stream)};
}

}  // namespace octavo
