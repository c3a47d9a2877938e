// Base of all kernels: CUDA's language under nvcc, or the emulator's (for tests without a GPU), and a few
// helper functions.
//
// nvcc compiles this header and views.h as C++20.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "kernels/cuda/emulator/language.h"
#endif

#include "kernels/cuda/kernels.h"

namespace octavo::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffff;

// ---- 16-bit and 8-bit numbers, for storage only; arithmetic is in f32.

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};
struct F8 {
  std::uint8_t bits;  // e4m3 without infinities
};

__device__ inline float bits_to_float(std::uint32_t bits) {
#ifdef __CUDACC__
  return __uint_as_float(bits);
#else
  return emulated::as<float>(bits);
#endif
}
__device__ inline std::uint32_t float_to_bits(float x) {
#ifdef __CUDACC__
  return __float_as_uint(x);
#else
  return emulated::as<std::uint32_t>(x);
#endif
}

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) { return bits_to_float(static_cast<std::uint32_t>(x.bits) << 16); }
__device__ inline float to_float(F16 x) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(x.bits));
#else
  return emulated::half_to_float(x.bits);
#endif
}
// The multiplication changes the exponent's bias from 7 to 127. It is exact, also for subnormal numbers.
__device__ inline float to_float(F8 x) {
  const std::uint32_t magnitude = x.bits & 0x7f;
  if (magnitude == 0x7f) return bits_to_float(0x7fc00000);
  const float value = bits_to_float(magnitude << 20) * 0x1p120f;
  return (x.bits & 0x80) != 0 ? -value : value;
}

// Conversions round to nearest, ties to even.
template <class T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline Bf16 from_float<Bf16>(float x) {
#ifdef __CUDACC__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#else
  return {emulated::float_to_bfloat(x)};
#endif
}
template <>
__device__ inline F16 from_float<F16>(float x) {
#ifdef __CUDACC__
  return {__half_as_ushort(__float2half_rn(x))};
#else
  return {emulated::float_to_half(x)};
#endif
}
// Numbers out of range become 448 or -448, and NaN stays NaN. Numbers below 2^-6 are multiples of 2^-9.
template <>
__device__ inline F8 from_float<F8>(float x) {
  const std::uint32_t bits = float_to_bits(x);
  const std::uint32_t sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<std::uint8_t>(sign | 0x7f)};
  if (magnitude >= 0x43e00000) return {static_cast<std::uint8_t>(sign | 0x7e)};  // 448
  if (magnitude < 0x3c800000) {  // adding 1.5 * 2^23 units of 2^-9 rounds to an integer number of units
    const float shifted = bits_to_float(magnitude) + 24576.0f;
    return {static_cast<std::uint8_t>(sign | (float_to_bits(shifted) & 0xf))};
  }
  const std::uint32_t rounded = magnitude + 0x7ffff + (magnitude >> 20 & 1);
  return {static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120 << 3)))};
}

// Calls body(T{}), where T is the C++ type of `format`.
template <class Body>
void for_activation(Format format, Body&& body) {
  if (format == Format::bf16) return body(Bf16{});
  if (format == Format::f16) return body(F16{});
  body(float{});
}

// A register holds two 16-bit numbers, the first one in the lower half. The following functions work on
// pairs of such registers.
#ifdef __CUDACC__
template <class T>
__device__ inline std::uint32_t pack(float low, float high) {  // compiles to one instruction
  if constexpr (std::is_same_v<T, Bf16>) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(both);
  } else {
    const __half2 both = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(both);
  }
}
template <class T, class Apply>
__device__ inline std::uint32_t of_pairs(std::uint32_t x, std::uint32_t y, Apply apply) {
  using Pair = std::conditional_t<std::is_same_v<T, Bf16>, __nv_bfloat162, __half2>;
  const Pair result = apply(reinterpret_cast<const Pair&>(x), reinterpret_cast<const Pair&>(y));
  return reinterpret_cast<const std::uint32_t&>(result);
}
template <class T>
__device__ inline std::uint32_t subtract_pairs(std::uint32_t x, std::uint32_t y) {
  return of_pairs<T>(x, y, [](auto a, auto b) { return __hsub2(a, b); });
}
template <class T>
__device__ inline std::uint32_t multiply_pairs(std::uint32_t x, std::uint32_t y) {
  return of_pairs<T>(x, y, [](auto a, auto b) { return __hmul2(a, b); });
}
#else
template <class T>
std::uint32_t pack(float low, float high) {
  return from_float<T>(low).bits | static_cast<std::uint32_t>(from_float<T>(high).bits) << 16;
}
// Returns the number in half `i` of a register as f32.
template <class T>
float half_of(std::uint32_t pair, int i) {
  T x;
  x.bits = static_cast<std::uint16_t>(pair >> (16 * i));
  return to_float(x);
}
template <class T>
std::uint32_t subtract_pairs(std::uint32_t x, std::uint32_t y) {
  return pack<T>(half_of<T>(x, 0) - half_of<T>(y, 0), half_of<T>(x, 1) - half_of<T>(y, 1));
}
template <class T>
std::uint32_t multiply_pairs(std::uint32_t x, std::uint32_t y) {
  return pack<T>(half_of<T>(x, 0) * half_of<T>(y, 0), half_of<T>(x, 1) * half_of<T>(y, 1));
}
#endif

// Declares a variable in shared memory: OCTAVO_SHARED(float, partials, [kWarp]);
#ifdef __CUDACC__
#define OCTAVO_SHARED(type, name, extents) __shared__ type name extents
#else
#define OCTAVO_SHARED(type, name, extents) \
  static type name extents;                \
  ::octavo::cuda::emulated::enter_shared(&name, sizeof name)
#endif

// Consecutive kernels overlap if the device supports it ("programmatic dependent launch", since compute
// capability 9.0): when all thread blocks of a kernel have started, blocks of the next kernel start as
// resources become free. So every thread of every kernel must call wait_for_kernels(), which returns when
// all previous kernels have ended. Before this call, a kernel may read only its arguments and weights, and
// write only shared memory.
#ifdef __CUDACC__
__device__ inline void wait_for_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
#endif
}

bool kernels_overlap();
void must_launch(cudaError_t status);  // ends the process with the driver's text if `status` is an error

template <class... Params, class... Args>
void launch(StreamHandle stream, dim3 grid, int threads, std::size_t shared_bytes, void (*kernel)(Params...),
            const Args&... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = kernels_overlap() ? 1 : 0;
  must_launch(cudaLaunchKernelEx(&config, kernel, args...));
}
// Allows a kernel to use `bytes` of dynamic shared memory; needed if `bytes` exceeds the default of 48 KiB.
template <class... Params>
void allow_shared(void (*kernel)(Params...), std::size_t bytes) {
  cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bytes));
}
__device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char octavo_shared[];
  return octavo_shared;
}
#else
inline void wait_for_kernels() { emulated::wait_for_kernels(); }

template <class... Params, class... Args>
void launch(StreamHandle stream, dim3 grid, int threads, std::size_t shared_bytes, void (*kernel)(Params...),
            const Args&... args) {
  emulated::load_code(reinterpret_cast<const void*>(kernel));
  emulated::enqueue(stream, [=] { emulated::run(grid, threads, shared_bytes, [&] { kernel(args...); }); });
}
template <class... Params>
void allow_shared(void (*)(Params...), std::size_t) {}
inline unsigned char* shared_memory() { return emulated::shared_memory(); }
#endif

__device__ inline std::int64_t block_x() { return blockIdx.x; }
__device__ inline std::int64_t block_y() { return blockIdx.y; }
__device__ inline int thread() { return static_cast<int>(threadIdx.x); }
__device__ inline int lane() { return thread() % kWarp; }
__device__ inline int warp() { return thread() / kWarp; }

// Returns true if this thread block is the last of `blocks` blocks that call the function; each block calls
// it once. The last block may then read, with read_shared_work(), what the other blocks wrote before their
// calls. `arrived` must be zero before the first call, and is zero after the last call. Every thread must
// call the function.
__device__ inline bool last_to_arrive(std::int32_t* arrived, int blocks) {
  OCTAVO_SHARED(int, before, [1]);
  __threadfence();
  __syncthreads();
  if (thread() == 0) before[0] = atomicAdd(arrived, 1);
  __syncthreads();
  if (before[0] < blocks - 1) return false;
  __threadfence();
  if (thread() == 0) *arrived = 0;
  return true;
}
__device__ inline float read_shared_work(const float* at) { return __ldcg(at); }

// ---- Sums and maxima over a warp or a thread block, in a fixed order. All threads get the result.

template <class T>
__device__ inline T warp_sum(T x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
template <class T>
__device__ inline T warp_max(T x) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, x, step);
    x = other > x ? other : x;
  }
  return x;
}

// `partials` has kWarp elements in shared memory. Every thread of the thread block must call it.
template <class T, class Combine>
__device__ inline T block_combine(T mine, T* partials, Combine combine) {
  __syncthreads();  // The barrier waits until all threads have read the old values.
  if (lane() == 0) partials[warp()] = mine;
  __syncthreads();
  T all = partials[0];
  for (int w = 1; w < static_cast<int>(blockDim.x) / kWarp; ++w) all = combine(all, partials[w]);
  return all;
}
template <class T>
__device__ inline T block_sum(T x, T* partials) {
  return block_combine(warp_sum(x), partials, [](T a, T b) { return a + b; });
}
template <class T>
__device__ inline T block_max(T x, T* partials) {
  return block_combine(warp_max(x), partials, [](T a, T b) { return b > a ? b : a; });
}

}  // namespace octavo::cuda
