// The micro-kernel of products, for any instruction set S. All unquantised products use it,
// including both products of attention.
#pragma once

#include <utility>

#include "kernels/cpu/vector_math.h"

namespace octavo::cpu {
namespace {

// The Operand.. structs load one step of W, each in one operand format. Raw is a loaded vector, and kUnits is
// the number of elements of x per step.
template <class S>
struct OperandF32 {
  static constexpr int kUnits = 1;
  using Raw = F<S>;
  static Raw load(const void* p) { return S::load_f32(p); }
  static F<S> unit(Raw raw, int) { return raw; }
};

template <class S>
struct OperandF16 {
  static constexpr int kUnits = 1;
  using Raw = F<S>;
  static Raw load(const void* p) { return S::load_f16(p); }
  static F<S> unit(Raw raw, int) { return raw; }
};

template <class S>
struct OperandBf16 {
  static constexpr int kUnits = 2;
  using Raw = typename S::Pairs;
  static Raw load(const void* p) { return S::load_pairs(p); }
  static F<S> unit(Raw raw, int u) { return u == 0 ? S::low(raw) : S::high(raw); }
};

template <class S>
struct OperandE4m3 : OperandBf16<S> {
  static typename S::Pairs load(const void* p) { return S::pairs_e4m3(p); }
};

template <class S>
struct OperandI8 : OperandBf16<S> {
  static typename S::Pairs load(const void* p) { return S::pairs_i8(p); }
};

// One step for x in f32. It adds unit * x to the accumulators, one unit after another.
template <class S, class W, int kRows>
struct WideStep {
  static constexpr int kUnits = W::kUnits;
  static void run(const std::byte* w, std::int64_t vector_stride, const std::byte* const* x,
                  std::int64_t row_stride, std::int64_t unit_stride, F<S> (&c)[kRows][2]) {
    const typename W::Raw raw0 = W::load(w);
    const typename W::Raw raw1 = W::load(w + vector_stride);
#pragma GCC unroll 2
    for (int u = 0; u < W::kUnits; ++u) {
      const F<S> w0 = W::unit(raw0, u);
      const F<S> w1 = W::unit(raw1, u);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        float value;
        __builtin_memcpy(&value, x[r / 3] + (r % 3) * row_stride + u * unit_stride, sizeof value);
        const F<S> b = S::set(value);
        c[r][0] = S::fma(w0, b, c[r][0]);
        c[r][1] = S::fma(w1, b, c[r][1]);
      }
    }
  }
};

// One step for x in bf16 pairs.
template <class S, class W, int kRows>
struct DotStep {
  static constexpr int kUnits = 1;
  static void run(const std::byte* w, std::int64_t vector_stride, const std::byte* const* x,
                  std::int64_t row_stride, std::int64_t, F<S> (&c)[kRows][2]) {
    const typename S::Pairs w0 = W::load(w);
    const typename S::Pairs w1 = W::load(w + vector_stride);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const typename S::Pairs b = S::broadcast_pair(x[r / 3] + (r % 3) * row_stride);
      c[r][0] = S::dot(c[r][0], w0, b);
      c[r][1] = S::dot(c[r][1], w1, b);
    }
  }
};

template <class S, int kRows, class Step, bool kAhead>
void run_tile(const TileArgs& args) {
  F<S> c[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    c[r][0] = args.accumulate ? S::load_f32(args.c + r * args.c_stride) : S::zero();
    c[r][1] = args.accumulate ? S::load_f32(args.c + r * args.c_stride + S::kLanes) : S::zero();
  }
  // Number of pointers to rows: there is a pointer to every third row, and scaled addressing reaches the
  // other two rows.
  constexpr int kPointers = (kRows + 2) / 3;
  const std::byte* x[kPointers];
#pragma GCC unroll 4
  for (int i = 0; i < kPointers; ++i) x[i] = args.x + 3 * i * args.x_row_stride;
  for (std::int64_t s = 0; s < args.segments; ++s) {
    const std::byte* w = args.w[s] + args.w_offset;
    const std::byte* ahead = kAhead ? args.ahead[s] + args.w_offset : nullptr;
    for (std::int64_t step = 0; step < args.steps; ++step) {
      if constexpr (kAhead) {
        __builtin_prefetch(ahead, 0, 2);
        __builtin_prefetch(ahead + args.ahead_vector_stride, 0, 2);
        ahead += args.ahead_step_stride;
      }
      Step::run(w, args.vector_stride, x, args.x_row_stride, args.x_unit_stride, c);
      w += args.step_stride;
#pragma GCC unroll 4
      for (int i = 0; i < kPointers; ++i) x[i] += Step::kUnits * args.x_unit_stride;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    S::store_f32(args.c + r * args.c_stride, c[r][0]);
    S::store_f32(args.c + r * args.c_stride + S::kLanes, c[r][1]);
  }
}

template <class S, int kRows, class Step>
void tile(const TileArgs& args) {
  if (args.ahead != nullptr) return run_tile<S, kRows, Step, true>(args);
  run_tile<S, kRows, Step, false>(args);
}

// Tile functions for 1 to S::kTileRows rows.
template <int kRows>
struct TileTable {
  TileFunction functions[kRows];
};

template <class S, class W, std::size_t... r>
constexpr TileTable<S::kTileRows> wide_tiles(std::index_sequence<r...>) {
  return {{tile<S, static_cast<int>(r) + 1, WideStep<S, W, static_cast<int>(r) + 1>>...}};
}

template <class S, class W, std::size_t... r>
constexpr TileTable<S::kTileRows> dot_tiles(std::index_sequence<r...>) {
  return {{tile<S, static_cast<int>(r) + 1, DotStep<S, W, static_cast<int>(r) + 1>>...}};
}

template <class S, class W>
constexpr auto kWideTiles = wide_tiles<S, W>(std::make_index_sequence<S::kTileRows>{});
template <class S, class W>
constexpr auto kDotTiles = dot_tiles<S, W>(std::make_index_sequence<S::kTileRows>{});

// Returns null if S does not support W.
template <class S, class W>
constexpr const TileFunction* dot_functions() {
  if constexpr (S::kDot) return kDotTiles<S, W>.functions;
  return nullptr;
}

}  // namespace
}  // namespace octavo::cpu
