// CUDA's language on the host, as far as Octavo's kernels use it, so that tests of their logic need no
// device. Blocks run one after the other, with threads as fibers that switch at barriers.
//
// It checks more than a device does:
//   - streams run only when a thread waits for them, so that a late copy or an early read always fails
//   - it reports a barrier that not all threads reach
//   - all shared memory is NaN at the start of every block
//   - every allocation ends at an inaccessible page
//   - between barriers threads run in random order
//   - some launches run twice, with threads and blocks reversed: a result that differs is a race
// It does not model speed or a device's memory model.
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
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT: as CUDA's
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};

struct CUstream_st;

namespace octavo::cuda::emulated {

// Work for a stream. It runs when a thread waits for it, not earlier.
void enqueue(CUstream_st* stream, std::function<void()> work);

// A kernel is launched: from its first time on its code takes memory.
void load_code(const void* kernel);

// Runs `body` once for every thread of every block.
void run(dim3 grid, int threads, std::size_t shared_bytes, const std::function<void()>& body);

// The thread that runs now; `block_size` threads are a block.
struct Running {
  dim3 thread{0, 0, 0}, block{0, 0, 0}, block_size;
  int lane = 0;
};
inline constinit Running running;
inline int lane() { return running.lane; }

unsigned char* shared_memory();
// Every thread that comes to a static variable in shared memory; the first of a block finds it full of NaN.
void enter_shared(void* variable, std::size_t bytes);

void wait_for_kernels();  // every thread must have called before it ends

void block_barrier();
void warp_barrier();
// Barrier `id`, 1 to 15, of `threads` threads of the block. A thread that only arrives does not wait.
void named_barrier(int id, int threads);
void named_arrival(int id, int threads);

// Deferred work of a thread: copies into shared memory, and products of a warpgroup. Each runs as late as
// possible, when a thread waits for it. So an early read or overwrite gives a wrong result every time.
enum class Later { copies, products };
void begin_later(Later kind, std::function<void()> work);
void commit_later(Later kind);            // makes the started copies a group
void wait_later(Later kind, int groups);  // waits until at most this number of groups is running

// Barriers in shared memory that count arrivals and bytes of copies, which are done as late as may be, too. They begin in phase
// 0; waiting for a phase is for the one under way or the one before it.
void begin_phases(void* barrier, int arrivals);
void arrive(void* barrier, std::int64_t bytes);  // arrives, and expects this number of further bytes
void copy_counted(void* barrier, std::int64_t bytes, std::function<void()> copy);
void wait_phase(void* barrier, std::uint64_t phase);

// Hands `bytes` (at most kExchangeBytes) of every lane of the warp to every other; returns the 32 slots, good
// until the warp's exchange after the next.
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
inline int atomicAdd(int* sum, int x) {  // only one thread runs at a time
  const int before = *sum;
  *sum += x;
  return before;
}
inline int __ffs(unsigned x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
