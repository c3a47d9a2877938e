// Matrix products on AMX tiles. T has the processor's instructions (isa_amx.cc), or functions that emulate
// the instructions (amx_model.cc).
//
// Four of the eight tiles have sums, two have parts of x, and two have parts of W. Each loaded tile is used
// twice.
#pragma once

#include <utility>

#include "kernels/cpu/matrix_tiles.h"
#include "kernels/cpu/quant_parts_body.h"
#include "kernels/cpu/simd_avx512.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kLineBytes = 64;
// Distance of prefetches of a panel that is converted while it is read. Without them, one row takes 1.3 times
// as long.
constexpr std::int64_t kAheadBytes = 2048;

// Operand of LDTILECFG, in the layout that the processor defines.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

template <class T>
void begin_tiles(std::int64_t rows, std::int64_t row_bytes) {
  TileConfiguration shape;
  const auto last = static_cast<std::uint8_t>((rows - 1) % kMatrixRows + 1);
  // Index of the tile for the second half of the rows, in sums and x; 0 if there is only one half.
  const int half = rows > kMatrixRows ? 1 : 0;
  shape.rows[2 * half] = shape.rows[2 * half + 1] = shape.rows[4 + half] = last;
  shape.row_bytes[4] = shape.row_bytes[5] = static_cast<std::uint16_t>(row_bytes);
  shape.rows[6] = shape.rows[7] = static_cast<std::uint8_t>(row_bytes / 4);
  T::configure(shape);
}

// Formats of W. load() returns one vector of a step as pairs of bf16.
struct TileBf16 {
  static constexpr bool kDirect = true;  // the tile instructions can load W from the panel
  static Avx512::Pairs load(const std::byte* p) { return Avx512::load_pairs(p); }
};
struct TileE4m3 {
  static constexpr bool kDirect = false;
  static Avx512::Pairs load(const std::byte* p) { return Avx512::pairs_e4m3(p); }
};

// A copy of up to kSteps steps of W in bf16. Missing steps are zero, because memory after a segment must not
// be read.
template <class W, std::int64_t kSteps>
struct alignas(64) CopiedSteps {
  std::byte data[kSteps * 2 * kMatrixBytes];

  void copy(const std::byte* w, std::int64_t steps, const TileArgs& args) {
    if (steps < kSteps) __builtin_memset(data, 0, sizeof data);
    for (std::int64_t i = 0; i < steps && i < kSteps; ++i)
      for (std::int64_t v = 0; v < 2; ++v) {
        if (!W::kDirect && v == 0) __builtin_prefetch(w + i * args.step_stride + kAheadBytes, 0, 3);
        const Avx512::Pairs pairs = W::load(w + i * args.step_stride + v * args.vector_stride);
        __builtin_memcpy(data + (2 * i + v) * kMatrixBytes, &pairs, sizeof pairs);
      }
  }
};

template <class T, int kHalves>
void multiply_block(const std::byte* x, const TileArgs& args, const std::byte* w, std::int64_t step_stride,
                    std::int64_t vector_stride) {
  T::template load<4>(x, args.x_row_stride);
  T::template load<6>(w, step_stride);
  T::template dot_bf16<0, 4, 6>();
  T::template load<7>(w + vector_stride, step_stride);
  T::template dot_bf16<1, 4, 7>();
  if constexpr (kHalves == 2) {
    T::template load<5>(x + kMatrixRows * args.x_row_stride, args.x_row_stride);
    T::template dot_bf16<2, 5, 6>();
    T::template dot_bf16<3, 5, 7>();
  }
}

template <class T, class W, int kHalves, std::int64_t kSteps>
void matrix_product(const TileArgs& args) {
  const std::int64_t c_bytes = args.c_stride * static_cast<std::int64_t>(sizeof(float));
  float* const halves[2] = {args.c, args.c + kMatrixRows * args.c_stride};
  if (args.accumulate) {
    T::template load<0>(halves[0], c_bytes);
    T::template load<1>(halves[0] + kMatrixRows, c_bytes);
    if constexpr (kHalves == 2) {
      T::template load<2>(halves[1], c_bytes);
      T::template load<3>(halves[1] + kMatrixRows, c_bytes);
    }
  } else {
    T::template zero<0>();
    T::template zero<1>();
    if constexpr (kHalves == 2) {
      T::template zero<2>();
      T::template zero<3>();
    }
  }
  const std::byte* x = args.x;
  const std::byte* ahead_x = args.ahead_x;
  for (std::int64_t s = 0; s < args.segments; ++s) {
    const std::byte* w = args.w[s] + args.w_offset;
    const std::byte* ahead = args.ahead != nullptr ? args.ahead[s] + args.w_offset : nullptr;
    // Tiles wait long for the stores of vectors, so a block is converted before the product of the previous
    // block.
    CopiedSteps<W, kSteps> copies[2];
    if constexpr (!W::kDirect) copies[0].copy(w, args.steps, args);
    for (std::int64_t step = 0; step < args.steps; step += kSteps) {
      if (ahead != nullptr) {
        const std::int64_t bytes = kSteps * args.ahead_step_stride;
        const std::int64_t stride = args.ahead_step_stride < kLineBytes ? kLineBytes : args.ahead_step_stride;
        for (std::int64_t i = 0; i < bytes; i += stride) {
          __builtin_prefetch(ahead + i, 0, 2);
          if (args.ahead_vector_stride != 0) __builtin_prefetch(ahead + i + args.ahead_vector_stride, 0, 2);
        }
        ahead += bytes;
      }
      if (ahead_x != nullptr) {
        for (std::int64_t i = 0; i < args.ahead_x_bytes; i += kLineBytes)
          __builtin_prefetch(ahead_x + i, 0, 2);
        ahead_x += args.ahead_x_bytes;
      }
      const std::int64_t left = args.steps - step;
      if (W::kDirect && left >= kSteps) {
        multiply_block<T, kHalves>(x, args, w, args.step_stride, args.vector_stride);
      } else {
        const std::int64_t turn = step / kSteps % 2;
        if constexpr (W::kDirect) {
          copies[turn].copy(w, left, args);
        } else if (left > kSteps) {
          copies[1 - turn].copy(w + kSteps * args.step_stride, left - kSteps, args);
        }
        multiply_block<T, kHalves>(x, args, copies[turn].data, 2 * kMatrixBytes, kMatrixBytes);
      }
      w += kSteps * args.step_stride;
      x += kSteps * args.x_unit_stride;
    }
  }
  T::template store<0>(halves[0], c_bytes);
  T::template store<1>(halves[0] + kMatrixRows, c_bytes);
  if constexpr (kHalves == 2) {
    T::template store<2>(halves[1], c_bytes);
    T::template store<3>(halves[1] + kMatrixRows, c_bytes);
  }
}

// Loads the first operands of a block of steps. x passes L1, so that W stays in it.
template <class T>
[[gnu::always_inline]] inline void load_block(const std::byte* x, const std::byte* w) {
  T::template load_passing<4>(x, kMatrixBytes);
  T::template load<6>(w, 2 * kMatrixBytes);
  T::template load<7>(w + kMatrixBytes, 2 * kMatrixBytes);
  T::template load_passing<5>(x + kMatrixRows * kMatrixBytes, kMatrixBytes);
}

// Multiplies the loaded block, and loads the next block while the tiles multiply.
template <class T>
[[gnu::always_inline]] inline void multiply_and_load(const std::byte* next_x, const std::byte* next_w) {
  T::template dot_bf16<0, 4, 6>();
  T::template dot_bf16<1, 4, 7>();
  T::template load_passing<4>(next_x, kMatrixBytes);
  T::template dot_bf16<2, 5, 6>();
  T::template load<6>(next_w, 2 * kMatrixBytes);
  T::template dot_bf16<3, 5, 7>();
  T::template load<7>(next_w + kMatrixBytes, 2 * kMatrixBytes);
  T::template load_passing<5>(next_x + kMatrixRows * kMatrixBytes, kMatrixBytes);
}

// Loads wait until earlier stores of tiles are in L1. So the first block of the next tile is loaded before
// the sums are stored.
template <class T>
void strip_product(const StripArgs& args) {
  constexpr std::int64_t kX = 2 * kMatrixRows * kMatrixBytes, kW = 2 * kMatrixSteps * kMatrixBytes;
  const std::int64_t c_bytes = args.c_stride * static_cast<std::int64_t>(sizeof(float));
  const std::byte *x = args.x, *ahead = args.ahead, *ahead_x = args.ahead_x;
  float* c = args.c;
  load_block<T>(x, args.w);
  for (std::int64_t tile = 0; tile < args.tiles; ++tile, c += 2 * kMatrixRows * args.c_stride) {
    float* const half = c + kMatrixRows * args.c_stride;
    if (args.accumulate) {
      T::template load<0>(c, c_bytes);
      T::template load<1>(c + kMatrixRows, c_bytes);
      T::template load<2>(half, c_bytes);
      T::template load<3>(half + kMatrixRows, c_bytes);
    } else {
      T::template zero<0>();
      T::template zero<1>();
      T::template zero<2>();
      T::template zero<3>();
    }
    const std::byte* w = args.w;
    for (std::int64_t block = 1; block <= args.blocks; ++block) {
      for (std::int64_t i = 0; i < args.ahead_bytes; i += kLineBytes) __builtin_prefetch(ahead + i, 0, 2);
      ahead += args.ahead_bytes;
      for (std::int64_t i = 0; i < args.ahead_x_bytes; i += kLineBytes) __builtin_prefetch(ahead_x + i, 0, 2);
      ahead_x += args.ahead_x_bytes;
      // The blocks of the next tile follow those of this tile; after the last one, any block will do.
      x = tile + 1 < args.tiles || block < args.blocks ? x + kX : args.x;
      w = block < args.blocks ? w + kW : args.w;
      multiply_and_load<T>(x, w);
    }
    T::template store<0>(c, c_bytes);
    T::template store<1>(c + kMatrixRows, c_bytes);
    T::template store<2>(half, c_bytes);
    T::template store<3>(half + kMatrixRows, c_bytes);
  }
}

void stream_bytes(const void* from, void* to, std::int64_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  std::int64_t at =
      -static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kLineBytes) & (kLineBytes - 1);
  if (at > bytes) at = bytes;
  __builtin_memcpy(target, source, static_cast<std::size_t>(at));
  for (; at + kLineBytes <= bytes; at += kLineBytes)
    Avx512::stream(target + at, Avx512::load_ints(source + at));
  __builtin_memcpy(target + at, source + at, static_cast<std::size_t>(bytes - at));
}

struct QuantTable {
  QuantParts parts[kQuantKinds];
};
template <class T, int... kKinds>
constexpr QuantTable quant_table(std::integer_sequence<int, kKinds...>) {
  return {{quant_parts<T, Avx512, kKinds>()...}};
}
template <class T>
constexpr QuantTable kQuantTable = quant_table<T>(std::make_integer_sequence<int, kQuantKinds>{});

template <class T>
constexpr MatrixTiles matrix_tiles() {
  return {
      .begin = begin_tiles<T>,
      .end = T::release,
      .bf16 = {matrix_product<T, TileBf16, 1, kMatrixSteps>, matrix_product<T, TileBf16, 2, kMatrixSteps>},
      .short_bf16 = {matrix_product<T, TileBf16, 1, kShortSteps>,
                     matrix_product<T, TileBf16, 2, kShortSteps>},
      .e4m3 = {matrix_product<T, TileE4m3, 1, kMatrixSteps>, matrix_product<T, TileE4m3, 2, kMatrixSteps>},
      .strip_bf16 = strip_product<T>,
      .quant_parts = kQuantTable<T>.parts,
      .stream = stream_bytes};
}

}  // namespace
}  // namespace octavo::cpu
