// The tile instructions in software, as Intel's manual defines them ("Software Developer's Manual", volume
// 2): so that the products on tiles run in every test.
#include "kernels/cpu/amx_body.h"

namespace octavo::cpu {
namespace {

constexpr int kTiles = 8;
constexpr int kRows = 16;
constexpr int kFloats = 16;  // of a row; or pairs of bf16

struct alignas(64) Tile {
  std::byte data[kRows][kTileRowBytes];
  template <class T>
  T* row(int i) {
    return reinterpret_cast<T*>(data[i]);
  }
};
struct State {
  bool configured;
  Tile tiles[kTiles];
};
thread_local constinit State state = {};

// DAZ and FTZ: numbers below the least normal one are zero, whatever MXCSR says.
float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }
// The even or the odd one of a pair of bf16.
template <bool kOdd>
float number(std::uint32_t pair) {
  const std::uint32_t bits = kOdd ? pair & 0xffff0000u : pair << 16;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return flushed(x);
}

struct Model {
  static void configure(const TileConfiguration& tiles) {
    for (int i = 0; i < kTiles; ++i)
      if (tiles.palette != 1 || tiles.rows[i] != kRows || tiles.row_bytes[i] != kTileRowBytes)
        __builtin_trap();
    state = {};
    state.configured = true;
  }
  static void release() { state = {}; }
  template <int tile>
  static void zero() {
    at<tile>() = {};
  }
  template <int tile>
  static void load(const void* from, std::int64_t stride) {
    for (int i = 0; i < kRows; ++i)
      __builtin_memcpy(at<tile>().data[i], static_cast<const std::byte*>(from) + i * stride, kTileRowBytes);
  }
  template <int tile>
  static void store(void* to, std::int64_t stride) {
    for (int i = 0; i < kRows; ++i)
      __builtin_memcpy(static_cast<std::byte*>(to) + i * stride, at<tile>().data[i], kTileRowBytes);
  }
  // TDPBF16PS.
  template <int c, int a, int b>
  static void dot_bf16() {
    for (int m = 0; m < kRows; ++m) {
      float even[kFloats] = {}, odd[kFloats] = {};
      for (int k = 0; k < kFloats; ++k) {
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

 private:
  template <int tile>
  static Tile& at() {
    if (!state.configured) __builtin_trap();  // the processor's #UD
    return state.tiles[tile];
  }
};

}  // namespace

constinit const MatrixTiles kModelledTiles = matrix_tiles<Model>();

}  // namespace octavo::cpu
