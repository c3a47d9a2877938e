// Vector code before and after products on matrix tiles, for quantised weights and any instruction set S.
// It converts codes to bytes, and adds exact sums to the f32 sums as in quant_body.h.
#pragma once

#include "kernels/cpu/matrix_tiles.h"
#include "kernels/cpu/quant_body.h"

namespace octavo::cpu {
namespace {

template <class S, int kKind, int... kSteps>
void unpack_group(const std::byte* planes, std::byte* bytes, std::integer_sequence<int, kSteps...>) {
  using Q = Quant<S, kKind>;
  constexpr int kVector = sizeof(Ints<S>);
  (S::store_ints(bytes + 2 * kSteps * kVector, Q::template codes<kSteps>(planes)), ...);
  (S::store_ints(bytes + (2 * kSteps + 1) * kVector, Q::template codes<kSteps>(planes + Q::kPlane / 2)), ...);
}

template <class S, int kKind>
void unpack_codes(const std::byte* group, std::int64_t groups, std::byte* bytes) {
  using Q = Quant<S, kKind>;
  for (std::int64_t g = 0; g < groups; ++g) {
    unpack_group<S, kKind>(group + Q::kSubBytes, bytes, std::make_integer_sequence<int, 8>{});
    group += Q::kGroupBytes;
    bytes += kQuantGroup * Q::kWidth;
  }
}

template <class S, int kKind>
void join_sums(const QuantJoinArgs& args) {
  using Q = Quant<S, kKind>;
  GroupScales<S> header, w;
  Q::header(args.block, header);
  w = header;
  if constexpr (Q::kTwoLevels) Q::scales(header, args.group, args.sub, w);
  const int sum = Q::kFormat.subs == 1 ? 2 : args.sub;
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const auto* x = reinterpret_cast<const QuantX*>(args.x + r * args.x_row_stride);
    const F<S> scale = S::set(x->scale);
    float* c = args.c + r * args.c_stride;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      Ints<S> sums = S::load_ints(args.sums + r * Q::kWidth + v * S::kLanes);
      if constexpr (Q::kFormat.zero != 0)
        sums = S::add_ints(sums, S::set_int(-Q::kFormat.zero * x->sums[sum]));
      F<S> out = S::load_f32(c + v * S::kLanes);
      out = S::fma(S::floats(sums), S::mul(w.scale[v], scale), out);
      if constexpr (Q::kHasMin) out = S::fma(w.min[v], S::set(x->minus_sums[sum]), out);
      S::store_f32(c + v * S::kLanes, out);
    }
  }
}

// A plane of eight bits already has one byte per column, so it needs no conversion.
template <class S, int kKind>
constexpr QuantParts quant_parts() {
  if constexpr (Quant<S, kKind>::kFormat.low_bits == 8) return {nullptr, join_sums<S, kKind>};
  return {unpack_codes<S, kKind>, join_sums<S, kKind>};
}

}  // namespace
}  // namespace octavo::cpu
