// Copies of tiles from global to shared memory by the tensor memory accelerator (TMA) of Hopper (PTX ISA,
// "cp.async.bulk.tensor"), and cluster primitives for shared tiles. One thread starts the copy of a tile to
// one thread block, or to all thread blocks of a cluster. The tile arrives with the 128-byte swizzle that
// wgmma needs. A barrier in shared memory counts the bytes that have arrived.
#pragma once

#include "kernels/cuda/wgmma.h"

#ifdef __CUDACC__
#include <cuda.h>
#endif

namespace octavo::cuda {

// Number of thread blocks in a cluster, which share tiles. The emulator runs one thread block at a time.
#ifdef __CUDACC__
constexpr int kCluster = 2;
#else
constexpr int kCluster = 1;
#endif

#ifdef __CUDACC__

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define OCTAVO_CLUSTER
#define OCTAVO_PARAMETER
#else
#define OCTAVO_CLUSTER __cluster_dims__(::octavo::cuda::kCluster, 1, 1)
#define OCTAVO_PARAMETER __grid_constant__
#endif

// The driver's descriptor of tiles. The kernel gets it as a parameter.
using TileMap = CUtensorMap;
void describe_tiles(const TileSource& source, void* map);  // defined in runtime.cc
inline TileMap tile_map(const TileSource& source) {
  TileMap map;
  describe_tiles(source, &map);
  return map;
}

// Barrier in shared memory that counts arrivals and bytes, in consecutive phases.
using TileBarrier = std::uint64_t;

#if OCTAVO_WGMMA
__device__ inline int block_of_cluster() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
// Waits for all threads of all thread blocks of the cluster, and makes the writes visible that they made
// before the call.
__device__ inline void cluster_barrier() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}
// Initialises a barrier. One thread must call it before a cluster_barrier(). A phase of the barrier ends
// after `arrivals` arrivals and all expected bytes.
__device__ inline void begin_barrier(TileBarrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;" ::"r"(
                   shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
__device__ inline void arrive_and_expect(TileBarrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Arrives at the same barrier of another thread block of the cluster. The arrival reports that this thread
// block has read the tiles. It does not release written data, because a release to the cluster would wait for
// all pending operations of the thread.
__device__ inline void arrive_at(TileBarrier* barrier, int block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(barrier)),
      "r"(block)
      : "memory");
}
// Waits until phase `phase`, counted from 0, has ended.
__device__ inline void wait_phase(TileBarrier* barrier, std::int64_t phase) {
  std::uint32_t done = 0;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(static_cast<std::uint32_t>(phase & 1))
        : "memory");
  } while (done == 0);
}
// Copies the tile whose first element is (row, column) to this thread block.
__device__ inline void copy_tile(void* to, const TileMap& from, std::int64_t row, std::int64_t column,
                                 TileBarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_address(to)),
      "l"(&from), "r"(shared_address(barrier)), "r"(static_cast<std::int32_t>(column)),
      "r"(static_cast<std::int32_t>(row))
      : "memory");
}
// Copies the tile to the same address in all thread blocks of the cluster. The barrier of each thread block
// counts the bytes that arrive there.
__device__ inline void copy_tile_to_all(void* to, const TileMap& from, std::int64_t row, std::int64_t column,
                                        TileBarrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5}], [%2], %3;" ::"r"(shared_address(to)),
      "l"(&from), "r"(shared_address(barrier)), "h"(static_cast<std::uint16_t>((1 << kCluster) - 1)),
      "r"(static_cast<std::int32_t>(column)), "r"(static_cast<std::int32_t>(row))
      : "memory");
}
#endif

#else

#define OCTAVO_CLUSTER
#define OCTAVO_PARAMETER

using TileMap = TileSource;
inline TileMap tile_map(const TileSource& source) { return source; }
struct TileBarrier {
  std::uint64_t bits;
};

inline int block_of_cluster() { return 0; }
inline void cluster_barrier() { __syncthreads(); }
inline void begin_barrier(TileBarrier* barrier, int arrivals) { emulated::begin_phases(barrier, arrivals); }
inline void arrive_and_expect(TileBarrier* barrier, int bytes) { emulated::arrive(barrier, bytes); }
inline void arrive_at(TileBarrier* barrier, int) { emulated::arrive(barrier, 0); }
inline void wait_phase(TileBarrier* barrier, std::int64_t phase) {
  emulated::wait_phase(barrier, static_cast<std::uint64_t>(phase));
}
inline void copy_tile(void* to, const TileMap& from, std::int64_t row, std::int64_t column, TileBarrier* barrier) {
  emulated::copy_counted(barrier, from.tile_rows * kTileRowBytes, [to, from, row, column] {
    for (int r = 0; r < from.tile_rows; ++r)
      for (int c = 0; c < kTileColumns; ++c) {
        std::uint16_t bits = 0;
        if (row + r < from.rows && column + c < from.columns)
          std::memcpy(&bits, static_cast<const std::byte*>(from.data) + (row + r) * from.stride_bytes + (column + c) * 2,
                      sizeof bits);
        std::memcpy(static_cast<std::byte*>(to) + swizzled(r, c / 8) + c % 8 * 2, &bits, sizeof bits);
      }
  });
}
inline void copy_tile_to_all(void* to, const TileMap& from, std::int64_t row, std::int64_t column, TileBarrier* barrier) {
  copy_tile(to, from, row, column, barrier);
}

#endif

}  // namespace octavo::cuda
