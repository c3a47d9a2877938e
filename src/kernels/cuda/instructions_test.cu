#include "kernels/cuda/instructions_test.h"

#include "kernels/cuda/attention_pieces.h"
#include "kernels/cuda/wgmma.h"

namespace octavo::cuda {
namespace {

[[maybe_unused]] constexpr int kSteps = kProductSide / 16;
constexpr int kTiles = kProductSide / kTileColumns;
constexpr int kABytes = kProductRows * kTileRowBytes, kBBytes = kProductSide * kTileRowBytes;
static_assert(kProductSide == kPieceTokens);

// Copies rows of 128 numbers to two tiles.
template <int kRows, class T>
__device__ void load(const T* from, unsigned char* to) {
  for (int i = thread(); i < kRows * kProductSide / 8; i += kWarpgroup) {
    const int row = i / (kProductSide / 8), chunk = i % (kProductSide / 8);
    *reinterpret_cast<uint4*>(to + chunk / 8 * kRows * kTileRowBytes + swizzled(row, chunk % 8)) =
        *reinterpret_cast<const uint4*>(from + row * kProductSide + chunk * 8);
  }
}

template <int kCount>
__device__ void store(float* out, int first_column, const float (&d)[kCount][4]) {
#pragma unroll
  for (int n = 0; n < kCount; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      out[(warp() * 16 + lane() / 4 + e / 2 * 8) * kProductSide + first_column + n * 8 + lane() % 4 * 2 + e % 2] = d[n][e];
}

template <class T>
__global__ void __launch_bounds__(kWarpgroup) products_kernel(const T* a, const T* b, float* by_warpgroup, float* by_warp) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  wait_for_kernels();
  unsigned char* const a_tiles = memory_of_tiles();
  unsigned char* const b_tiles = a_tiles + kTiles * kABytes;
  load<kProductRows>(a, a_tiles);
  load<kProductSide>(b, b_tiles);
  show_to_products();
  __syncthreads();
  std::uint32_t of_a[kSteps][4];
#pragma unroll
  for (int k = 0; k < kSteps; ++k)
    load_matrices(of_a[k], a_tiles + k / 4 * kABytes + swizzled(warp() * 16 + lane() % 16, k % 4 * 2 + lane() / 16));

  float d[kTokenTiles][4];
  begin_products();
#pragma unroll
  for (int k = 0; k < kSteps; ++k)
    multiply_tiles<T, kProductSide>(registers_of(d), operand(a_tiles + k / 4 * kABytes + k % 4 * 32),
                                    operand(b_tiles + k / 4 * kBBytes + k % 4 * 32), k > 0);
  commit_products();
  wait_products<0>(registers_of(d));
  store(by_warpgroup, 0, d);

#pragma unroll
  for (int n = 0; n < kTokenTiles; n += 2) {
#pragma unroll
    for (int e = 0; e < 4; ++e) d[n][e] = d[n + 1][e] = 0;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      std::uint32_t of_b[4];
      load_matrices(of_b, b_tiles + k / 4 * kBBytes +
                              swizzled(n * 8 + lane() / 16 * 8 + lane() % 8, k % 4 * 2 + lane() / 8 % 2));
      multiply_add<T>(d[n], of_a[k], {of_b[0], of_b[1]});
      multiply_add<T>(d[n + 1], of_a[k], {of_b[2], of_b[3]});
    }
  }
  store(by_warp, 0, d);

  constexpr int kSecond = kProductRows * kProductSide;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const unsigned char* const columns = b_tiles + tile * kBBytes;
    float mixed[kTileColumns / 8][4];
    begin_products();
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      multiply_rows<T>(registers_of(mixed), of_a[k], operand(columns + k * 16 * kTileRowBytes), k > 0);
    commit_products();
    wait_products<0>(registers_of(mixed));
    store(by_warpgroup + kSecond, tile * kTileColumns, mixed);
    const auto at = [&](int row, int column) {
      return reinterpret_cast<const T*>(columns + swizzled(row, column / 8));
    };
    mix_values<T>(of_a, at, false, mixed);
    store(by_warp + kSecond, tile * kTileColumns, mixed);
  }
#endif
}

__global__ void bytes_kernel(const std::uint32_t* a, const std::uint32_t* b, float* by_bytes,
                             float* widened) {
  wait_for_kernels();
  constexpr int kWords = 32 / 4;  // registers of a row
  const int g = lane() / 4, t = lane() % 4;
  const std::uint32_t of_a[4] = {a[g * kWords + t], a[(g + 8) * kWords + t], a[g * kWords + t + 4],
                                 a[(g + 8) * kWords + t + 4]};
  const std::uint32_t of_b[2] = {b[g * kWords + t], b[g * kWords + t + 4]};
  float d[2][4] = {};
  multiply_add_e4m3(d[0], of_a, of_b);
  multiply_add_widened(d[1], of_a, of_b);
  for (int e = 0; e < 4; ++e) {
    const int at = (g + e / 2 * 8) * 8 + 2 * t + e % 2;
    by_bytes[at] = d[0][e];
    widened[at] = d[1][e];
  }
}

template <class T>
__global__ void codes_kernel(uint4* numbers) {
  wait_for_kernels();
  const auto first = static_cast<unsigned>(thread()) * 8;
  const auto four = [](unsigned code) { return code | (code + 1) << 8 | (code + 2) << 16 | (code + 3) << 24; };
  numbers[thread()] = unpack8<T>(uint2{four(first), four(first + 4)}, Format::f8, 0);
}

}  // namespace

void convert_codes(StreamHandle stream, Format format, void* numbers) {
  for_activation(format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2) launch(stream, {1}, kWarp, 0, codes_kernel<T>, static_cast<uint4*>(numbers));
  });
}

void multiply_e4m3_both_ways(StreamHandle stream, const void* a, const void* b, float* by_bytes,
                             float* widened) {
  launch(stream, {1}, kWarp, 0, bytes_kernel, static_cast<const std::uint32_t*>(a),
         static_cast<const std::uint32_t*>(b), by_bytes, widened);
}

void multiply_both_ways(StreamHandle stream, Format format, const void* a, const void* b, float* by_warpgroup,
                        float* by_warp) {
  constexpr std::size_t kBytes = kTiles * (kABytes + kBBytes) + kSwizzleBytes;
  for_activation(format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2) {
      allow_shared(products_kernel<T>, kBytes);
      launch(stream, {1}, kWarpgroup, kBytes, products_kernel<T>, static_cast<const T*>(a), static_cast<const T*>(b),
             by_warpgroup, by_warp);
    }
  });
}

}  // namespace octavo::cuda
