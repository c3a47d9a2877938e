// Products of small matrices in one warp on tensor cores: D[16, 8] += A[16, 16] * B[16, 8], with 16-bit
// inputs and f32 sums.
//
// The registers of a lane hold these elements, with g = lane / 4 and t = lane % 4 (PTX ISA, "Matrix
// Fragments for mma.m16n8k16"):
//   a[0] = A[g][2t, 2t + 1]        a[1] = A[g + 8][2t, 2t + 1]
//   a[2] = A[g][2t + 8, 2t + 9]    a[3] = A[g + 8][2t + 8, 2t + 9]
//   b[0] = B[2t, 2t + 1][g]        b[1] = B[2t + 8, 2t + 9][g]
//   d[0], d[1] = D[g][2t, 2t + 1]  d[2], d[3] = D[g + 8][2t, 2t + 1]
//
// A row of D depends only on the same row of A and on B.
//
// multiply_add_e4m3() computes D[16, 8] += A[16, 32] * B[32, 8] with e4m3 inputs ("Matrix Fragments for
// mma.m16n8k32"). A register has four consecutive columns of A or rows of B:
//   a[0] = A[g][4t ..]    a[1] = A[g + 8][4t ..]    a[2] = A[g][4t + 16 ..]    a[3] = A[g + 8][4t + 16 ..]
//   b[0] = B[4t ..][g]    b[1] = B[4t + 16 ..][g]
#pragma once

#include "kernels/cuda/gpu.h"

namespace octavo::cuda {

#ifdef __CUDACC__

template <class T>
__device__ inline void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (sizeof(T) == 2 && std::is_same_v<T, Bf16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// Loads four matrices of 8 x 8 numbers from shared memory. Lane i passes the address of row i % 8 of matrix
// i / 8, which must be aligned to 16 bytes. Each lane receives the numbers 2t and 2t + 1 of row g of each
// matrix.
__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
// Loads like load_matrices, but transposes each matrix: a lane receives number g of the rows 2t and 2t + 1.
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

#else

// Multiplies registers that contain kNumbers numbers each; number(register, i) returns number i. The sums
// have the order of A's columns, as in wgmma.h.
template <int kNumbers, class Number>
void multiply_add_numbers(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                          Number&& number) {
  struct Fragments {
    std::uint32_t a[4], b[2];
  } mine;
  std::memcpy(mine.a, a, sizeof mine.a);
  std::memcpy(mine.b, b, sizeof mine.b);
  const std::byte* slots = emulated::warp_exchange(&mine, sizeof mine);
  const int g = emulated::lane() / 4, t = emulated::lane() % 4;
  float sum[4] = {};
  for (int half = 0; half < 2; ++half)
    for (int owner = 0; owner < 4; ++owner) {
      const auto top = emulated::of_lane<Fragments>(slots, g * 4 + owner);
      const Fragments of_b[2] = {emulated::of_lane<Fragments>(slots, 2 * t * 4 + owner),
                                 emulated::of_lane<Fragments>(slots, (2 * t + 1) * 4 + owner)};
      for (int i = 0; i < kNumbers; ++i)
        for (int column = 0; column < 2; ++column) {
          const float y = number(of_b[column].b[half], i);
          sum[column] += number(top.a[2 * half], i) * y;
          sum[2 + column] += number(top.a[2 * half + 1], i) * y;
        }
    }
  for (int i = 0; i < 4; ++i) d[i] += sum[i];
}

template <class T>
void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_add_numbers<2>(d, a, b, [](std::uint32_t two, int i) { return half_of<T>(two, i); });
}

inline void multiply_add_e4m3(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_add_numbers<4>(d, a, b, [](std::uint32_t four, int i) {
    return to_float(F8{static_cast<std::uint8_t>(four >> (8 * i))});
  });
}

inline void load_matrices(std::uint32_t (&r)[4], const void* row) {
  const std::byte* slots = emulated::warp_exchange(&row, sizeof row);
  const int g = emulated::lane() / 4, t = emulated::lane() % 4;
  for (int i = 0; i < 4; ++i) r[i] = emulated::of_lane<const std::uint32_t*>(slots, 8 * i + g)[t];
}
inline void load_matrices_transposed(std::uint32_t (&r)[4], const void* row) {
  const std::byte* slots = emulated::warp_exchange(&row, sizeof row);
  const int g = emulated::lane() / 4, t = emulated::lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const auto* low = emulated::of_lane<const std::uint16_t*>(slots, 8 * i + 2 * t);
    const auto* high = emulated::of_lane<const std::uint16_t*>(slots, 8 * i + 2 * t + 1);
    r[i] = low[g] | static_cast<std::uint32_t>(high[g]) << 16;
  }
}

#endif

// Converts the bytes 2 * half and 2 * half + 1 of a register to f16, which is exact.
__device__ inline std::uint32_t widen_e4m3(std::uint32_t four, int half) {
  const auto number = [&](int i) {
    return to_float(F8{static_cast<std::uint8_t>(four >> (16 * half + 8 * i))});
  };
  return pack<F16>(number(0), number(1));
}

// Computes multiply_add_e4m3() in f16.
__device__ inline void multiply_add_widened(float (&d)[4], const std::uint32_t (&a)[4],
                                            const std::uint32_t (&b)[2]) {
  const auto multiply_half = [&](std::uint32_t top, std::uint32_t bottom, std::uint32_t of_b) {
    multiply_add<F16>(d,
                      {widen_e4m3(top, 0), widen_e4m3(bottom, 0), widen_e4m3(top, 1), widen_e4m3(bottom, 1)},
                      {widen_e4m3(of_b, 0), widen_e4m3(of_b, 1)});
  };
  multiply_half(a[0], a[1], b[0]);
  multiply_half(a[2], a[3], b[1]);
}

#ifdef __CUDACC__
__device__ inline void multiply_add_e4m3(float (&d)[4], const std::uint32_t (&a)[4],
                                         const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 890
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else  // older GPUs have no such instruction
  multiply_add_widened(d, a, b);
#endif
}
#endif

}  // namespace octavo::cuda
