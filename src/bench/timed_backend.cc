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
  // Bytes of the matrices that were read since the embedding, which begins a step; nullopt outside of a
  // step.
  std::optional<std::int64_t> step_bytes;
};
Timing timing;

// Returns the bytes of the experts' matrices that the operator reads. On a device, the host does not know
// which experts have tokens, so the estimate assumes that no two tokens have the same expert.
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

template <class Args>
std::int64_t matrix_bytes(const Args& args) {
  if constexpr (requires { args.w.bytes(); }) return static_cast<std::int64_t>(args.w.bytes());
  if constexpr (std::is_same_v<Args, GroupedMatmulArgs>) return expert_bytes(args);
  return 0;
}

template <Need kOp, auto kMember, class Args>
void timed(Stream& stream, const Args& args) {
  constexpr auto kIndex = static_cast<std::size_t>(kOp);
  const std::int64_t begin = now_ns();
  (timing.ops->*kMember)(stream, args);
  timing.times->nanoseconds[kIndex] += now_ns() - begin;
  ++timing.times->calls[kIndex];
  if constexpr (kOp == Need::embed) timing.step_bytes = 0;
  if (timing.step_bytes) *timing.step_bytes += matrix_bytes(args);
  if constexpr (kOp == Need::sample)
    if (timing.step_bytes) timing.times->weight_bytes = *std::exchange(timing.step_bytes, std::nullopt);
}

}  // namespace

Backend timed_backend(Backend backend, OpTimes& times) {
  timing.ops = &backend.ops;
  timing.times = &times;
  timing.timed = backend.ops;
  timing.on_host = backend.device->shares_host_memory();
#define OCTAVO_TIME(name, Args, backends) \
  if (backend.ops.has(Need::name)) timing.timed->name = timed<Need::name, &Ops::name, Args>;
  OCTAVO_OPERATORS(OCTAVO_TIME)
#undef OCTAVO_TIME
  return {backend.name, *timing.timed, std::move(backend.device), std::move(backend.stream)};
}

}  // namespace octavo
