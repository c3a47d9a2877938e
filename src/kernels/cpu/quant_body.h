// The micro-kernel of integer products with quantised weights, for any instruction set S and quantised
// format.
//
// Products of codes are summed exactly, in integers, over groups of 32 columns. If scales change inside a
// group, a sum covers half a group; if several groups share their scales, a sum covers these groups. The
// integer sums are then added to the f32 sums in the order of the columns. So the result depends neither on
// the batch nor on the instruction set.
#pragma once

#include <utility>

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

template <class S>
using Ints = typename S::Ints;

template <class S>
struct GroupScales {
  F<S> scale[2];
  F<S> min[2];
};

struct Ahead {
  const std::byte* at;
  std::int64_t bytes;  // bytes per group
};

template <class S, int kKind>
struct Quant {
  static constexpr QuantFormat kFormat = kQuantFormats[kKind];
  static constexpr QuantScales kScales = kFormat.scales;
  static constexpr bool kSmall =
      kFormat.values != CodeValues::iq4 && kFormat.low_bits + kFormat.high_bits < 8;
  static constexpr int kWidth = 2 * S::kLanes;
  static constexpr bool kTwoLevels = kFormat.two_levels();
  static constexpr bool kHasMin = kFormat.has_min();
  static constexpr bool kWide = kFormat.scale_bytes() == 4;
  static constexpr int kPlane = 4 * kWidth;  // bytes of a plane with one bit per code
  static constexpr int kSubBytes = kWidth * kFormat.sub_bytes();
  static constexpr int kHeaderBytes = quant_header_bytes(kWidth, kFormat.scale_bytes() + kFormat.min_bytes());
  // Number of pointers to rows of x: there is a pointer to every third row, and a stride leads to the two
  // rows after it.
  template <int kRows>
  static constexpr int kPointers = (kRows + 2) / 3;
  static constexpr int kGroupBytes = kSubBytes + kPlane * (kFormat.low_bits + kFormat.high_bits);

  static void header(const std::byte* p, GroupScales<S>& h) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const int lane = v * S::kLanes;
      h.scale[v] = kFormat.scale_bytes() == 0     ? S::zero()
                   : kWide                        ? S::load_f32(p + lane * 4)
                   : kScales == QuantScales::bf16 ? S::load_bf16(p + lane * 2)
                                                  : S::load_f16(p + lane * 2);
      if constexpr (kFormat.factor != 1) h.scale[v] = S::mul(h.scale[v], S::set(kFormat.factor));
      if constexpr (kScales == QuantScales::f32_zero)
        h.min[v] = S::mul(h.scale[v], S::floats(S::load_u8(p + kWidth * 4 + lane)));
      else if constexpr (kHasMin)
        h.min[v] = S::load_f16(p + kWidth * 2 + lane * 2);
    }
  }

  // Loads the scales of one part of a group, for formats with two levels of scales.
  static void scales(const GroupScales<S>& header, const std::byte* group, int sub, GroupScales<S>& s) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const std::byte* p = group + sub * kWidth + v * S::kLanes;
      if constexpr (kScales == QuantScales::bytes) {
        s.scale[v] = S::mul(header.scale[v], S::floats(S::load_i8(p)));
      } else if constexpr (kScales == QuantScales::bf16_parts) {
        s.scale[v] = S::load_bf16(group + 2 * (sub * kWidth + v * S::kLanes));
      } else if constexpr (kScales == QuantScales::bytes_min) {
        s.scale[v] = S::mul(header.scale[v], S::floats(S::load_u8(p)));
        s.min[v] = S::mul(header.min[v], S::floats(S::load_u8(p + kFormat.subs * kWidth)));
      } else {
        const Ints<S> both = S::load_u8(p);
        s.scale[v] = S::mul(header.scale[v], S::floats(S::template bits<0, 15>(both)));
        s.min[v] = S::mul(header.min[v], S::floats(S::template bits<4, 15>(both)));
      }
    }
  }

  // Loads four codes per lane, which are the columns 4 * kStep to 4 * kStep + 3 of one vector of rows.
  template <int kStep>
  static Ints<S> codes(const std::byte* planes) {
    constexpr int kLow = kFormat.low_bits, kHigh = kFormat.high_bits;
    Ints<S> low = S::load_ints(planes + kStep * kLow / 8 * kPlane);
    if constexpr (kLow < 8) low = S::template bits<kStep * kLow % 8, (1 << kLow) - 1>(low);
    if constexpr (kHigh > 0) {
      const Ints<S> high = S::load_ints(planes + (kLow + kStep * kHigh / 8) * kPlane);
      low = S::join(low, S::template bits<kStep * kHigh % 8 - kLow, ((1 << kHigh) - 1) << kLow>(high));
    }
    if constexpr (kFormat.values != CodeValues::codes)
      low = S::lookup(low, kCodeValues[static_cast<int>(kFormat.values)]);
    return low;
  }

  template <int kRows, int kStep>
  [[gnu::always_inline]] static void step(const std::byte* planes, const std::byte* const* x,
                                          std::int64_t row_stride, Ints<S> (&sums)[kRows][2]) {
    const Ints<S> w0 = codes<kStep>(planes);
    const Ints<S> w1 = codes<kStep>(planes + kPlane / 2);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      int quad;
      __builtin_memcpy(&quad, x[r / 3] + (r % 3) * row_stride + 4 * kStep, sizeof quad);
      const Ints<S> b = S::set_int(quad);
      sums[r][0] = S::template dot_quads<kSmall>(sums[r][0], w0, b);
      sums[r][1] = S::template dot_quads<kSmall>(sums[r][1], w1, b);
    }
  }

  // Multiplies part kSub of the columns of `groups` groups that share their scales.
  template <int kRows, int kSub, int... kSteps>
  [[gnu::always_inline]] static void part(const GroupScales<S>& header, const std::byte* group,
                                          std::int64_t groups, const std::byte* const* x,
                                          std::int64_t row_stride, F<S> (&c)[kRows][2], Ahead& ahead,
                                          std::integer_sequence<int, kSteps...>) {
    constexpr int kSum = kFormat.subs == 1 ? 2 : kSub;
    const auto at = [&](int r) { return reinterpret_cast<const QuantX*>(x[r / 3] + (r % 3) * row_stride); };
    Ints<S> sums[kRows][2];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
      sums[r][0] = sums[r][1] = S::set_int(kFormat.zero == 0 ? 0 : -kFormat.zero * at(r)->sums[kSum]);
    const std::byte* quads[kPointers<kRows>];
#pragma GCC unroll 4
    for (int i = 0; i < kPointers<kRows>; ++i) quads[i] = x[i];
    for (std::int64_t g = 0;;) {
      if constexpr (kSub == 0) {
#pragma GCC unroll 32
        for (int line = 0; line < kGroupBytes; line += 64) __builtin_prefetch(group + line);
        for (std::int64_t line = 0; line < ahead.bytes; line += 64) __builtin_prefetch(ahead.at + line, 0, 2);
        ahead.at += ahead.bytes;
      }
      (step<kRows, kSub* static_cast<int>(sizeof...(kSteps)) + kSteps>(group + kSubBytes, quads, row_stride,
                                                                       sums),
       ...);
      if (++g == groups) break;
      group += kGroupBytes;
#pragma GCC unroll 4
      for (int i = 0; i < kPointers<kRows>; ++i) quads[i] += sizeof(QuantX);
    }
    GroupScales<S> own;
    // In formats with two levels of scales, the groups that share scales are a single group.
    if constexpr (kTwoLevels) scales(header, group, kSub, own);
    const GroupScales<S>& w = kTwoLevels ? own : header;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F<S> scale = S::set(at(r)->scale);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        c[r][v] = S::fma(S::floats(sums[r][v]), S::mul(w.scale[v], scale), c[r][v]);
        if constexpr (kHasMin) c[r][v] = S::fma(w.min[v], S::set(at(r)->minus_sums[kSum]), c[r][v]);
      }
    }
  }

  // Multiplies x by the groups of a panel. kShared is the number of groups that share a scale of x. The
  // scales of the weights must not change within these groups.
  template <int kRows, int kShared>
  [[gnu::always_inline]] static void multiply(const QuantTileArgs& args, F<S> (&c)[kRows][2]) {
    const std::byte* x[kPointers<kRows>];
#pragma GCC unroll 4
    for (int i = 0; i < kPointers<kRows>; ++i) x[i] = args.x + 3 * i * args.x_row_stride;
    Ahead ahead{args.ahead, args.ahead_bytes};
    const std::byte* block = args.w;
    for (std::int64_t b = 0; b < args.blocks; ++b, block += args.block_bytes) {
      GroupScales<S> h;
      header(block, h);
      const std::byte* group = block + kHeaderBytes + args.first_group * kGroupBytes;
      std::int64_t together = 1;
      for (std::int64_t g = 0; g < args.groups; g += together, group += together * kGroupBytes) {
        if constexpr (kShared > 1) together = args.groups - g < kShared ? args.groups - g : kShared;
        if constexpr (kFormat.subs == 1) {
          part<kRows, 0>(h, group, together, x, args.x_row_stride, c, ahead,
                         std::make_integer_sequence<int, 8>{});
        } else {
          part<kRows, 0>(h, group, 1, x, args.x_row_stride, c, ahead, std::make_integer_sequence<int, 4>{});
          part<kRows, 1>(h, group, 1, x, args.x_row_stride, c, ahead, std::make_integer_sequence<int, 4>{});
        }
#pragma GCC unroll 4
        for (int i = 0; i < kPointers<kRows>; ++i)
          x[i] += together * static_cast<std::int64_t>(sizeof(QuantX));
      }
    }
  }

  template <int kRows>
  static void tile(const QuantTileArgs& args) {
    F<S> c[kRows][2];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      c[r][0] = args.accumulate ? S::load_f32(args.c + r * args.c_stride) : S::zero();
      c[r][1] = args.accumulate ? S::load_f32(args.c + r * args.c_stride + S::kLanes) : S::zero();
    }
    if constexpr (kWide) {
      args.x_shared == 1 ? multiply<kRows, 1>(args, c) : multiply<kRows, kQuantShared>(args, c);
    } else {
      multiply<kRows, 1>(args, c);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      S::store_f32(args.c + r * args.c_stride, c[r][0]);
      S::store_f32(args.c + r * args.c_stride + S::kLanes, c[r][1]);
    }
  }
};

struct QuantTiles {
  QuantTileFunction functions[kQuantKinds][kQuantRows];
};

template <class S, int kKind, int... r>
constexpr void fill_quant_rows(QuantTiles& tiles, std::integer_sequence<int, r...>) {
  ((tiles.functions[kKind][r] = Quant<S, kKind>::template tile<r + 1>), ...);
}

template <class S, int... kind>
constexpr QuantTiles quant_tiles(std::integer_sequence<int, kind...>) {
  QuantTiles tiles{};
  (fill_quant_rows<S, kind>(tiles, std::make_integer_sequence<int, kQuantRows>{}), ...);
  return tiles;
}

}  // namespace
}  // namespace octavo::cpu
