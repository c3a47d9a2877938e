#include "bench/timed_backend.h"

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "base/clock.h"

namespace octavo {
namespace {

struct Timing {
  const Ops* ops = nullptr;
  OpTimes* times = nullptr;
  bool on_host = false;
  std::optional<Ops> timed;
  std::optional<std::int64_t> step_bytes;  // since the embedding of a step that is not sampled yet
};
Timing timing;

// On a device the host cannot see which experts have tokens: each token may have a separate one.
std::int64_t expert_bytes(const GroupedMatmulArgs& args) {
  const auto experts = static_cast<std::int64_t>(args.w.size());
  if (experts == 0) return 0;
  std::int64_t read = std::min(args.y.shape[0], experts);
  if (timing.on_host) {
    const std::span starts(args.starts.as<std::int32_t>(), args.w.size() + 1);
    read = 0;
    for (std::size_t e = 0; e < args.w.size(); ++e) read += starts[e] < starts[e + 1];
  }
  return read * static_cast<std::int64_t>(args.w[0]->bytes());
}

template <std::size_t kName, auto kOp, class Args>
void timed(Stream& stream, const Args& args) {
  const std::int64_t begin = now_ns();
  (timing.ops->*kOp)(stream, args);
  timing.times->nanoseconds[kName] += now_ns() - begin;
  ++timing.times->calls[kName];
  if constexpr (std::is_same_v<Args, EmbedArgs>) timing.step_bytes = 0;
  if constexpr (std::is_same_v<Args, MatmulArgs> || std::is_same_v<Args, HeadMatmulArgs>)
    if (timing.step_bytes) *timing.step_bytes += static_cast<std::int64_t>(args.w.bytes());
  if constexpr (std::is_same_v<Args, GroupedMatmulArgs>)
    if (timing.step_bytes) *timing.step_bytes += expert_bytes(args);
  if constexpr (std::is_same_v<Args, SampleArgs>)
    if (timing.step_bytes) timing.times->weight_bytes = *std::exchange(timing.step_bytes, std::nullopt);
}

template <std::size_t kName, auto kOp, class Args>
void replace(Ops& ops, Op<Args> Ops::*) {
  ops.*kOp = timed<kName, kOp, Args>;
}

constexpr std::size_t place_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kOpNames, name) - kOpNames.begin());
}

// Ops begins with seven functions that are no operators of a step.
static_assert(sizeof(Ops) == (7 + kOpNames.size()) * sizeof(void (*)()), "an operator is missing in OCTAVO_OPERATORS");

}  // namespace

Backend timed_backend(Backend backend, OpTimes& times) {
  timing.ops = &backend.ops;
  timing.times = &times;
  timing.timed = backend.ops;
  timing.on_host = backend.device->shares_host_memory();
#define OCTAVO_REPLACE_OPERATOR(name) replace<place_of(#name), &Ops::name>(*timing.timed, &Ops::name);
  OCTAVO_OPERATORS(OCTAVO_REPLACE_OPERATOR)
#undef OCTAVO_REPLACE_OPERATOR
  return {backend.name, *timing.timed, std::move(backend.device), std::move(backend.stream)};
}

}  // namespace octavo
