// Runs CUDA kernels on the host, so that tests of kernels need no GPU. It has the part of CUDA's language
// that the kernels use. Thread blocks run one after the other; their threads are fibers that switch at
// barriers.
//
// The emulator detects more errors than a GPU does:
//
//   - Work in a stream runs only when a thread waits for it, so that a late copy or an early read always
//     fails.
//   - The emulator reports a barrier that some threads do not reach.
//   - All shared memory is NaN at the start of every thread block.
//   - Every allocation ends at an inaccessible page.
//   - Threads run in random order between barriers.
//   - Some launches run twice, the second time with threads and thread blocks in reversed order. If results
//     differ, the kernel has a race.
//
// The emulator models neither the speed nor the memory model of a GPU.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "tensor/dtype.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};

struct CUstream_st;

namespace octavo::cuda::emulated {

// Adds work to a stream. The work runs when a thread waits for the stream.
void enqueue(CUstream_st* stream, std::function<void()> work);

// Call it at each kernel launch. The first launch of a kernel allocates device memory for its code.
void load_code(const void* kernel);

// Runs `body` once for each thread of each thread block.
void run(dim3 grid, int threads, std::size_t shared_bytes, const std::function<void()>& body);

// Indices of the current thread. Its thread block has `block_size` threads.
struct Running {
  dim3 thread{0, 0, 0}, block{0, 0, 0}, block_size;
  int lane = 0;
};
inline constinit Running running;
inline int lane() { return running.lane; }

unsigned char* shared_memory();
// Every thread that reaches a static shared variable calls it. The first thread of a thread block sets the
// variable to NaN.
void enter_shared(void* variable, std::size_t bytes);

void wait_for_kernels();  // every thread must call it before it ends

void block_barrier();
void warp_barrier();
// Barrier `id` (1 to 15) for `threads` threads of the thread block. named_barrier() waits for all threads;
// named_arrival() only arrives and does not wait.
void named_barrier(int id, int threads);
void named_arrival(int id, int threads);

// Deferred work of a thread: copies into shared memory, and products of a warpgroup. The work runs as late
// as possible, when a thread waits for it, so an early read or overwrite always gives a wrong result.
enum class Later { copies, products };
void begin_later(Later kind, std::function<void()> work);
void commit_later(Later kind);
void wait_later(Later kind, int groups);  // waits until at most `groups` groups are unfinished

// Barriers in shared memory that count arrivals and copied bytes. The copies also run as late as possible.
// Phases are counted from 0. A thread can wait for the current phase or the previous phase.
void begin_phases(void* barrier, int arrivals);
void arrive(void* barrier, std::int64_t bytes);  // arrives, and adds `bytes` to the number of expected bytes
void copy_counted(void* barrier, std::int64_t bytes, std::function<void()> copy);
void wait_phase(void* barrier, std::uint64_t phase);

// Exchanges data within a warp. Each lane passes `bytes` bytes (at most kExchangeBytes), and all lanes get
// the 32 slots. The slots stay valid during the next exchange of the warp, and become invalid at the
// exchange after it.
constexpr std::size_t kExchangeBytes = 64;
const std::byte* warp_exchange(const void* mine, std::size_t bytes);

template <class To, class From>
To as(From x) {
  return std::bit_cast<To>(x);
}
template <class T>
T of_lane(const std::byte* slots, int lane) {
  T value;
  std::memcpy(&value, slots + static_cast<std::size_t>(lane) * kExchangeBytes, sizeof(T));
  return value;
}
template <class T>
T shuffle(T x, int from) {
  return of_lane<T>(warp_exchange(&x, sizeof x), from);
}

inline float half_to_float(std::uint16_t bits) { return to_f32(Float16{bits}); }
inline std::uint16_t float_to_half(float x) { return to_f16(x).bits; }
inline std::uint16_t float_to_bfloat(float x) { return to_bf16(x).bits; }

}  // namespace octavo::cuda::emulated

#define threadIdx (::octavo::cuda::emulated::running.thread)
#define blockIdx (::octavo::cuda::emulated::running.block)
#define blockDim (::octavo::cuda::emulated::running.block_size)

inline void __syncthreads() { octavo::cuda::emulated::block_barrier(); }
inline void __threadfence() {}
template <class T>
T __ldcg(const T* at) {
  return *at;
}
inline void __syncwarp() { octavo::cuda::emulated::warp_barrier(); }
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask) {
  return octavo::cuda::emulated::shuffle(x, octavo::cuda::emulated::lane() ^ mask);
}
template <class T>
T __shfl_sync(unsigned, T x, int lane) {
  return octavo::cuda::emulated::shuffle(x, lane);
}
template <class T>
T __shfl_up_sync(unsigned, T x, int distance) {
  const int lane = octavo::cuda::emulated::lane();
  return octavo::cuda::emulated::shuffle(x, lane >= distance ? lane - distance : lane);
}
inline unsigned __ballot_sync(unsigned, bool condition) {
  const std::byte* slots = octavo::cuda::emulated::warp_exchange(&condition, sizeof condition);
  unsigned mask = 0;
  for (int i = 0; i < 32; ++i) mask |= octavo::cuda::emulated::of_lane<bool>(slots, i) ? 1U << i : 0U;
  return mask;
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int atomicAdd(int* sum, int x) {  // needs no synchronisation, because only one thread runs at a time
  const int before = *sum;
  *sum += x;
  return before;
}
inline int __ffs(unsigned x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
