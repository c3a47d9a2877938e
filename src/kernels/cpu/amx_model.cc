// Emulates the tile instructions as Intel's manual defines them ("Software Developer's Manual", volume 2),
// so that products on tiles are tested on every machine.
#include "kernels/cpu/amx_body.h"

namespace octavo::cpu {
namespace {

constexpr int kTiles = 8;
constexpr int kRows = 16;
constexpr int kFloats = 16;  // floats, or pairs of bf16, in a row

struct alignas(64) Tile {
  std::byte data[kRows][kMatrixBytes];
  template <class T>
  T* row(int i) {
    return reinterpret_cast<T*>(data[i]);
  }
};
struct State {
  bool configured;
  TileConfiguration shape;
  Tile tiles[kTiles];
};
thread_local constinit State state = {};
thread_local constinit std::int64_t instructions = 0;

// Rounds subnormal numbers to zero, as the instructions do regardless of MXCSR.
float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }
template <bool kOdd>
float number(std::uint32_t pair) {
  const std::uint32_t bits = kOdd ? pair & 0xffff0000u : pair << 16;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return flushed(x);
}

struct Model {
  static void configure(const TileConfiguration& shape) {
    ++instructions;
    if (shape.palette != 1) __builtin_trap();
    for (int i = 0; i < kTiles; ++i)
      if (shape.rows[i] < 1 || shape.rows[i] > kRows || shape.row_bytes[i] < 1 ||
          shape.row_bytes[i] > kMatrixBytes)
        __builtin_trap();
    state = {.configured = true, .shape = shape, .tiles = {}};
  }
  static void release() {
    ++instructions;
    state.configured = false;
  }
  template <int tile>
  static void zero() {
    ++instructions;
    at<tile>() = {};
  }
  template <int tile>
  static void load(const void* from, std::int64_t stride) {
    ++instructions;
    at<tile>() = {};
    for (int i = 0; i < state.shape.rows[tile]; ++i)
      __builtin_memcpy(at<tile>().data[i], static_cast<const std::byte*>(from) + i * stride,
                       state.shape.row_bytes[tile]);
  }
  template <int tile>
  static void load_passing(const void* from, std::int64_t stride) {
    load<tile>(from, stride);
  }
  template <int tile>
  static void store(void* to, std::int64_t stride) {
    ++instructions;
    for (int i = 0; i < state.shape.rows[tile]; ++i)
      __builtin_memcpy(static_cast<std::byte*>(to) + i * stride, at<tile>().data[i],
                       state.shape.row_bytes[tile]);
  }
  // Emulates TDPBF16PS.
  template <int c, int a, int b>
  static void dot_bf16() {
    check<c, a, b>();
    ++instructions;
    for (int m = 0; m < state.shape.rows[a]; ++m) {
      float even[kFloats] = {}, odd[kFloats] = {};
      for (int k = 0; k < state.shape.rows[b]; ++k) {
        const std::uint32_t x = at<a>().template row<std::uint32_t>(m)[k];
        const auto* w = at<b>().template row<std::uint32_t>(k);
        for (int n = 0; n < kFloats; ++n) {
          even[n] = flushed(__builtin_fmaf(number<false>(x), number<false>(w[n]), even[n]));
          odd[n] = flushed(__builtin_fmaf(number<true>(x), number<true>(w[n]), odd[n]));
        }
      }
      auto* out = at<c>().template row<float>(m);
      for (int n = 0; n < kFloats; ++n) out[n] = flushed(flushed(out[n]) + flushed(even[n] + odd[n]));
    }
  }
  // Emulates TDPBSSD and TDPBSUD.
  template <int c, int a, int b, bool kSigned>
  static void dot_codes() {
    check<c, a, b>();
    ++instructions;
    const auto code = [](std::byte w) {
      return kSigned ? static_cast<std::int32_t>(static_cast<std::int8_t>(w)) : static_cast<std::int32_t>(w);
    };
    for (int m = 0; m < state.shape.rows[a]; ++m) {
      auto* out = at<c>().template row<std::int32_t>(m);
      for (int k = 0; k < state.shape.rows[b]; ++k) {
        const auto* x = at<a>().template row<std::int8_t>(m) + 4 * k;
        const auto* w = at<b>().template row<std::byte>(k);
        for (int n = 0; n < kFloats; ++n)
          for (int i = 0; i < 4; ++i) out[n] += x[i] * code(w[4 * n + i]);
      }
    }
  }

 private:
  // Traps if the shapes of the tiles do not fit. The processor raises #UD in this case.
  template <int c, int a, int b>
  static void check() {
    const TileConfiguration& shape = state.shape;
    if (shape.rows[c] != shape.rows[a] || shape.row_bytes[c] != shape.row_bytes[b] ||
        shape.row_bytes[a] != 4 * shape.rows[b] || shape.row_bytes[b] != kMatrixBytes)
      __builtin_trap();
  }
  template <int tile>
  static Tile& at() {
    if (!state.configured) __builtin_trap();  // the processor raises #UD
    return state.tiles[tile];
  }
};

}  // namespace

constinit const MatrixTiles kModelledTiles = matrix_tiles<Model>();

std::int64_t modelled_tile_instructions() { return instructions; }

}  // namespace octavo::cpu
