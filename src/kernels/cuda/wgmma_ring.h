// Ring of tile buffers in shared memory, for matrix products on Hopper (wgmma_matmul.cu, wgmma_codes.cu,
// wgmma_fp8.cu).
//
// Rows of w are the outputs and form the 64 rows of an instruction; rows of x form the 8 to 128 columns of
// the instruction. So the same instructions are used for one row of x and for thousands of rows. A slice of
// kSlice columns is one chain of sums, and slices are added in order, as in matmul.cu. So the bits of an
// output depend neither on the number of rows in a tile, nor on the team that computes a slice.
//
// Tiles of both operands pass through a ring in shared memory. A thread block has one or more teams of
// warpgroups, and each team has a separate ring. Either the teams of a thread block share the slices of a
// tile, or one team computes one or two tiles of outputs.
#pragma once

#include "kernels/cuda/matmul_rows.h"
#include "kernels/cuda/wgmma.h"

namespace octavo::cuda {

constexpr int kTileRows = 64;  // rows of w in a tile

// kN is the number of rows of x. kTall is the number of tiles of 64 outputs, one per warpgroup. kTeams is
// the number of teams of kTall warpgroups.
template <int kN_, int kTall_, int kTeams_, int kStages_>
struct Shape {
  static constexpr int kN = kN_, kTall = kTall_, kTeams = kTeams_, kStages = kStages_;
  static constexpr int kTeamThreads = kTall * kWarpgroup, kThreads = kTeams * kTeamThreads;
  static constexpr int kOutputs = kTall * kTileRows;
  static constexpr int kTotalBytes = kTeams > 1 ? kN * kTileRows * 4 : 0;
  static_assert(kTall == 1 || kTeams == 1);

  __device__ static int team() { return kTeams == 1 ? 0 : thread() / kTeamThreads; }

  static constexpr std::size_t shared_bytes(int stage_bytes) {
    const std::size_t bytes = kTotalBytes + kTeams * kStages * stage_bytes + kSwizzleBytes;
    return bytes <= (227 << 10) ? bytes : throw "more shared memory than there is";
  }
  // Returns the number of thread blocks that fit on a multiprocessor, which has 228 KiB of shared memory. In
  // addition to shared_bytes(), CUDA reserves 1 KiB for each thread block, and static variables need a few
  // bytes.
  static constexpr int blocks_on_processor(int stage_bytes) {
    return static_cast<int>((228 << 10) / (shared_bytes(stage_bytes) + 1100));
  }
};

// Copies kColumns columns of kN rows of x to a team's stages, as tiles of 64 columns.
template <class T, class S, int kColumns>
struct XTiles {
  static constexpr int kBytes = S::kN * kColumns * 2;
  static constexpr int kTileBytes = S::kN * kTileRowBytes;
  static constexpr int kChunks = kColumns / 8;  // 16-byte chunks in a row
  // Distance between the rows that a thread copies.
  static constexpr int kRowsApart = S::kTeamThreads / kChunks;
  static constexpr int kCopies = (S::kN + kRowsApart - 1) / kRowsApart;

  const MatmulParams& p;
  const int row, chunk;
  const bool aligned;
  const T* x[kCopies];  // null: the row is after the last row of x

  // `me` is the index of the thread in its team. `first` is the index of the first row of x.
  __device__ XTiles(const MatmulParams& product, int me, std::int64_t first)
      : p(product), row(me / kChunks), chunk(me % kChunks), aligned(x_aligned<T>(product)) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int r = row + i * kRowsApart;
      x[i] = r < S::kN && first + r < p.m ? x_row_of<T>(p, first + r) : nullptr;
    }
  }

  __device__ void begin(unsigned char* tiles, std::int64_t first) const {
    const std::int64_t column = first + chunk * 8;
    tiles += chunk / 8 * kTileBytes;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int r = row + i * kRowsApart;
      if (r >= S::kN) break;
      void* to = tiles + swizzled(r, chunk % 8);
      const bool valid = x[i] != nullptr && column < p.cols;
      if (aligned) {
        copy_async(to, valid ? x[i] + column : p.x.data, valid);
      } else {
        *static_cast<uint4*>(to) = valid ? load_x(x[i], column, p.cols, false) : uint4{0, 0, 0, 0};
      }
    }
  }
};

// Returns the address of a thread's totals. Threads with the same index in different teams share their
// totals. The totals of a thread are kWarpgroup elements apart.
__device__ inline float* totals_of(unsigned char* memory) {
  return reinterpret_cast<float*>(memory) + thread() % kWarpgroup;
}

// Adds one slice of each team, in order: to `total` if there is one team, otherwise to `together`. `slice` is
// the current slice of this team.
template <class S>
__device__ inline void add_slices(float (&total)[S::kN / 2], float* together, const float (&sum)[S::kN / 2],
                                  std::int64_t slice, std::int64_t slices) {
  if constexpr (S::kTeams == 1) {
#pragma unroll
    for (int i = 0; i < S::kN / 2; ++i) total[i] += sum[i];
  } else {
    for (int turn = 0; turn < S::kTeams; ++turn) {
      if (turn == S::team() && slice < slices)
#pragma unroll
        for (int i = 0; i < S::kN / 2; ++i)
          together[i * kWarpgroup] = (slice > 0 ? together[i * kWarpgroup] : 0) + sum[i];
      __syncthreads();
    }
  }
}

// Writes the outputs of a thread block. `row` is the first row of x, and `output` is the first output.
template <class Y, class S>
__device__ inline void store_totals(const MatmulParams& p, std::int64_t row, std::int64_t output,
                                    const float (&total)[S::kN / 2], const float* together) {
  const int team = S::team(), tall = thread() / kWarpgroup % S::kTall;
  const std::int64_t first = output + tall * kTileRows + warp() % 4 * 16 + lane() / 4;
#pragma unroll
  for (int i = 0; i < S::kN / 2; ++i) {
    if (S::kTeams > 1 && i / 4 % S::kTeams != team) continue;
    store<Y>(p, row + i / 4 * 8 + lane() % 4 * 2 + i % 2, first + i / 2 % 2 * 8,
             S::kTeams > 1 ? together[i * kWarpgroup] : total[i]);
  }
}

// Number of tiles of x in a group. With groups, thread blocks that run at the same time read few different
// tiles of x and w.
constexpr std::int64_t kGrouped = 8;

// First row of x and first output of a tile. There are blocks_of() tiles.
struct TileOrigin {
  std::int64_t row, output;
};
template <class S>
__device__ inline TileOrigin origin_of_tile(const MatmulParams& p, std::int64_t tile) {
  const std::int64_t across = (p.rows + S::kOutputs - 1) / S::kOutputs, down = (p.m + S::kN - 1) / S::kN;
  const std::int64_t group = tile / (kGrouped * across) * kGrouped, offset = tile % (kGrouped * across);
  const std::int64_t height = down - group < kGrouped ? down - group : kGrouped;
  return {(group + offset % height) * S::kN, offset / height * S::kOutputs};
}
template <class S>
__host__ __device__ unsigned blocks_of(const MatmulParams& p) {
  return pieces(p.rows, S::kOutputs) * pieces(p.m, S::kN);
}

// The part of a tile that a thread block computes: the columns [first, end). `slices` is the number of slices
// of the whole tile. If several thread blocks share the tile, all of them store the sums of their slices, and
// the last thread block to arrive adds the sums.
struct Part {
  std::int64_t first, end, slices;
  int blocks = 1;
  float* sums = nullptr;
  std::int32_t* arrived = nullptr;
};
__host__ __device__ inline std::int64_t slices_of(const MatmulParams& p) { return (p.cols + kSlice - 1) / kSlice; }
__device__ inline Part whole_tile(const MatmulParams& p) { return {0, p.cols, slices_of(p)}; }

// Returns the part of tile blockIdx.x that block blockIdx.y of the grid computes. grid_of() returns the grid.
template <class S>
__device__ inline Part part_of_block(const MatmulParams& p, int slices_each) {
  Part part = whole_tile(p);
  if (part.slices <= slices_each) return part;
  const std::int64_t tile = std::int64_t{blockIdx.z} * blocks_of<S>(p) + block_x();
  part.first = block_y() * slices_each;
  const std::int64_t end = (part.first + slices_each) * kSlice;
  if (end < part.end) part.end = end;
  part.blocks = static_cast<int>(pieces(part.slices, slices_each));
  part.sums = p.hopper.sums + tile * part.slices * (S::kOutputs * S::kN);
  part.arrived = p.hopper.arrived + tile;
  return part;
}
template <class S>
dim3 grid_of(const MatmulParams& p, int slices_each) {
  return {blocks_of<S>(p), pieces(slices_of(p), slices_each), static_cast<unsigned>(p.heads)};
}

// Returns the address of a thread's sums of a slice. The sums are S::kThreads elements apart.
template <class S>
__device__ inline float* sums_of_slice(const Part& part, std::int64_t slice) {
  return part.sums + slice * (S::kN / 2 * S::kThreads) + thread();
}

// Adds the thread's sums to `total`, or stores them for the thread block that adds the sums of all thread
// blocks. Every thread of the thread block must call it after its team has computed a slice.
template <class S>
__device__ inline void keep_slice(const Part& part, float (&total)[S::kN / 2], float* together,
                                  const float (&sum)[S::kN / 2], std::int64_t slice) {
  if constexpr (S::kTeams == 1) {
    if (part.blocks > 1) {
#pragma unroll
      for (int i = 0; i < S::kN / 2; ++i) sums_of_slice<S>(part, slice)[i * S::kThreads] = sum[i];
      return;
    }
  }
  add_slices<S>(total, together, sum, slice, part.slices);
}

// Call it after all slices of a thread block. Returns true if `total` includes the slices of the other
// thread blocks, in order.
template <class S>
__device__ inline bool has_all_slices(const Part& part, float (&total)[S::kN / 2]) {
  if constexpr (S::kTeams == 1) {
    // Number of slices whose sums are read together, so that reads overlap.
    constexpr int kAtOnce = S::kN < 64 ? 128 / S::kN : 2;
    if (part.blocks == 1) return true;
    if (!last_to_arrive(part.arrived, part.blocks)) return false;
#pragma unroll 1
    for (std::int64_t first = 0; first < part.slices; first += kAtOnce) {
      float sums[kAtOnce][S::kN / 2];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
        for (int i = 0; i < S::kN / 2; ++i)
          if (first + j < part.slices)
            sums[j][i] = read_shared_work(sums_of_slice<S>(part, first + j) + i * S::kThreads);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
        for (int i = 0; i < S::kN / 2; ++i)
          if (first + j < part.slices) total[i] += sums[j][i];
    }
  }
  return true;
}

// The buffers of a team, and the columns of each step. A step is kColumns columns. Steps are counted over all
// slices of the team.
template <class S, int kStageBytes, int kColumns>
struct Stages {
  static constexpr int kSteps = static_cast<int>(kSlice) / kColumns;  // number of steps in a slice
  static constexpr int kBytes = kStageBytes;
  // Number of thread blocks on a multiprocessor.
  static constexpr int kBlocks = S::kTeams > 1 ? 1 : S::blocks_on_processor(kStageBytes);

  unsigned char* const memory;
  const std::int64_t first_slice, end;  // first slice of the thread block, and end of its columns

  __device__ Stages(unsigned char* memory_of_block, const Part& part)
      : memory(memory_of_block + S::kTotalBytes + S::team() * S::kStages * kStageBytes),
        first_slice(part.first),
        end(part.end) {}

  __device__ unsigned char* at(std::int64_t step) const { return memory + step % S::kStages * kStageBytes; }
  // Returns the first column of a step.
  __device__ std::int64_t column(std::int64_t step) const {
    return (first_slice + step / kSteps * S::kTeams + S::team()) * kSlice + step % kSteps * kColumns;
  }
  __device__ bool valid(std::int64_t step) const { return column(step) < end; }
};

// Calls sum_slice(steps) for each slice of the team, with its number of steps. Afterwards `sum` contains the
// sums of the slice.
template <class S, int kColumns, class SumSlice>
__device__ inline void add_up_slices(const Part& part, float (&total)[S::kN / 2], float* together,
                                     const float (&sum)[S::kN / 2], SumSlice&& sum_slice) {
#pragma unroll 1
  for (std::int64_t first = part.first; first * kSlice < part.end; first += S::kTeams) {
    const std::int64_t slice = first + S::team();
    if (slice * kSlice < part.end) {
      const std::int64_t left = part.end - slice * kSlice, columns = left < kSlice ? left : kSlice;
      sum_slice(static_cast<int>((columns + kColumns - 1) / kColumns));
    }
    keep_slice<S>(part, total, together, sum, slice);
  }
  wait_copies<0>();
}

// Schedule of a product: the number of slices per thread block, and the estimated time. The unit of time is
// the time in which one multiprocessor reads or writes a byte when every multiprocessor runs its maximum
// number of thread blocks.
struct Schedule {
  int slices_each;
  std::int64_t time;
};
// `on_processor` is the number of thread blocks per multiprocessor. `slice_bytes` is the number of bytes
// that a thread block reads for one slice. `shares` is true if thread blocks can share a tile.
template <class S>
Schedule schedule_of(const MatmulParams& p, int on_processor, std::int64_t slice_bytes, bool shares) {
  constexpr std::int64_t kTile = S::kOutputs * S::kN, kSharedBytes = kTile * 4 * 2;
  const std::int64_t slices = slices_of(p), tiles = std::int64_t{blocks_of<S>(p)} * p.heads;
  const auto time_of = [&](std::int64_t each) {
    const std::int64_t blocks = tiles * pieces(slices, each);
    return pieces(blocks, p.hopper.processors * on_processor) * on_processor * each *
           (slice_bytes + (each < slices ? kSharedBytes : 0));
  };
  Schedule best{static_cast<int>(slices), time_of(slices)};
  if (!shares || tiles > kMostSharedTiles || tiles * slices * kTile > p.hopper.sums_room) return best;
  for (int each = best.slices_each - 1; each > 0; --each)
    // A different schedule must save more than 1/8 of the time.
    if (const std::int64_t time = time_of(each); time < best.time - best.time / 8) best = {each, time};
  return best;
}

// Finds the tile of a thread block: of a single product, or of an expert. Returns false if the thread block
// has no tile. `p` becomes the expert's product.
template <class S>
__device__ inline bool find_tile(const ExpertChunk& chunk, int slices_each, MatmulParams& p,
                                 TileOrigin& origin, Part& part) {
  origin = {block_y() * S::kN, block_x() * S::kOutputs};
  part = whole_tile(p);
  if (chunk.experts == 0) {
    origin = origin_of_tile<S>(p, block_x());
    part = part_of_block<S>(p, slices_each);
    return true;
  }
  std::int64_t tile = block_y();
  wait_for_kernels();
  if (!find_expert(chunk, S::kN, p, tile)) return false;
  origin.row = tile * S::kN;
  return true;
}

// Launches a kernel whose thread blocks call find_tile(). OfTeam is the type of their Stages.
template <class S, class OfTeam>
void launch_tiles(StreamHandle stream, void (*kernel)(ExpertChunk, int), const ExpertChunk& chunk) {
  constexpr std::size_t kBytes = S::shared_bytes(OfTeam::kBytes);
  const MatmulParams& p = chunk.product;
  const bool experts = chunk.experts > 0;
  const int slices_each =
      experts ? 0 : schedule_of<S>(p, OfTeam::kBlocks, OfTeam::kBytes * OfTeam::kSteps, true).slices_each;
  const dim3 grid =
      experts ? dim3(pieces(p.rows, S::kOutputs), pieces(p.m, S::kN) + static_cast<unsigned>(chunk.experts))
              : grid_of<S>(p, slices_each);
  allow_shared(kernel, kBytes);
  launch(stream, grid, S::kThreads, kBytes, kernel, chunk, slices_each);
}

}  // namespace octavo::cuda
