// y = x * w^T + bias on Hopper's tensor cores, for codes in fragment order (index_of in kernels.h), and the
// same product for experts.
//
// Codes pass through the ring of buffers without conversion. A warp converts them to fragments in registers:
// to integers code - zero, or to the numbers of their format. Both are exact in 16 bits. The sums of a group
// are multiplied by its scale in f32. So no number of w is rounded, and a scale costs one multiplication per
// output. Groups are added in order, in pieces of 128 columns, or of 32 columns if 128 columns contain
// several groups.
#include "kernels/cuda/wgmma_ring.h"

namespace octavo::cuda {
namespace {

constexpr int kStepColumns = static_cast<int>(kLaneColumns);
constexpr int kQuarter = 32, kQuarters = kStepColumns / kQuarter;
// bytes of the scales of a tile row
constexpr int kScaleBytes = kQuarters * static_cast<int>(sizeof(GroupScale));

// Layout of a stage in shared memory: rows of x, codes of the outputs, scales.
template <Format kFormat, class S>
struct Stage {
  static constexpr bool kNarrow = kFormat == Format::q4 || kFormat == Format::e2m1;
  static constexpr int kRowBytes = kNarrow ? kStepColumns / 2 : kStepColumns;
  static constexpr int kCodesAt = S::kN * kStepColumns * 2;
  static constexpr int kScalesAt = kCodesAt + S::kOutputs * kRowBytes;
  static constexpr int kBytes = kScalesAt + S::kOutputs * kScaleBytes;
  static_assert(kBytes % kSwizzleBytes == 0);

  // Returns the byte offset of a 16-byte chunk of a row's codes. In odd rows, the two halves of 128 bytes are
  // swapped, so that concurrent lanes read from all banks.
  __device__ static int chunk_at(int row, int chunk) {
    return row * kRowBytes + (kNarrow ? chunk : chunk ^ row % 2 * 4) * 16;
  }
};

template <Format kFormat, class S>
using CodeStages = Stages<S, Stage<kFormat, S>::kBytes, kStepColumns>;

// Copies codes and scales of one team to shared memory.
template <Format kFormat, class S>
struct CodeRing {
  using At = Stage<kFormat, S>;
  static constexpr int kChunks = At::kRowBytes / 16;            // number of 16-byte chunks in a row's codes
  static constexpr int kRowsApart = S::kTeamThreads / kChunks;  // distance between the rows that a thread
                                                                // copies
  static constexpr int kCopies = S::kOutputs / kRowsApart;

  const MatmulParams& p;
  const CodeStages<kFormat, S>& stages;
  const int me;
  const int scales_each;  // number of scales of a row per step: 1, or 1 per quarter
  const std::int64_t output;

  __device__ CodeRing(const MatmulParams& product, const CodeStages<kFormat, S>& of_team,
                      std::int64_t first_output)
      : p(product),
        stages(of_team),
        me(thread() % S::kTeamThreads),
        scales_each(product.w.groups == 1 || product.w.group % kStepColumns == 0 ? 1 : kQuarters),
        output(first_output) {}

  __device__ void begin(std::int64_t step) const {
    if (!stages.valid(step)) return;
    unsigned char* const to = stages.at(step);
    const std::int64_t first = stages.column(step);
    const int chunk = me % kChunks;
    const std::int64_t code = p.w.codes_at + first / kStepColumns * At::kRowBytes + chunk * 16;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int r = me / kChunks + i * kRowsApart;
      const bool valid = output + r < p.rows;
      copy_async(to + At::kCodesAt + At::chunk_at(r, chunk),
                 valid ? row_of(p.w, output + r) + code : p.w.data, valid);
    }
    for (int i = me; i < S::kOutputs * scales_each; i += S::kTeamThreads) {
      const int r = i / scales_each, quarter = i % scales_each;
      const int group = static_cast<int>(first + quarter * kQuarter) / p.w.group;
      const bool valid = output + r < p.rows;
      copy_async<sizeof(GroupScale)>(
          to + At::kScalesAt + r * kScaleBytes + quarter * static_cast<int>(sizeof(GroupScale)),
          row_of(p.w, valid ? output + r : 0) +
              // Padding columns have no group. They may use any scale, so they use the last one.
              (group < p.w.groups ? group : p.w.groups - 1) * sizeof(GroupScale),
          valid);
    }
  }
};

// Codes of one row and one step that a lane reads.
template <Format kFormat, class S>
struct RowCodes {
  using At = Stage<kFormat, S>;
  static constexpr int kPieces = At::kNarrow ? 1 : 2;
  uint4 codes[kPieces];

  __device__ RowCodes(const unsigned char* tile, int row) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i)
      codes[i] = *reinterpret_cast<const uint4*>(tile + At::chunk_at(row, i * 4 + lane() % 4));
  }

  // Converts 32 columns to fragments in registers: pairs[c] contains the columns 8c + 2t and 8c + 2t + 1 as
  // numbers.
  template <class T>
  __device__ void numbers(int quarter, float zero, std::uint32_t (&pairs)[4]) const {
    constexpr bool kBf16 = std::is_same_v<T, Bf16>;
    if constexpr (At::kNarrow) {
      const uint4& all = codes[0];
      const std::uint32_t word = quarter == 0 ? all.x : quarter == 1 ? all.y : quarter == 2 ? all.z : all.w;
      if constexpr (kFormat == Format::q4) {
        // a number so large that its lowest bit has the value 1
        constexpr float kLarge = kBf16 ? 128 : 1024;
        const std::uint32_t base = pack<T>(kLarge + zero, kLarge + zero);
#pragma unroll
        for (int c = 0; c < 4; ++c)
          pairs[c] = subtract_pairs<T>((word >> (4 * c) & 0x000f000f) | (kBf16 ? 0x43004300 : 0x64006400), base);
      } else {
        // The bits of e2m1, read as a 16-bit float, are twice the e2m1 number divided by kTimes, also for
        // subnormals.
        constexpr float kTimes = kBf16 ? 0x1p127f : 0x1p15f;
        const std::uint32_t times = pack<T>(kTimes, kTimes);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const std::uint32_t both = word >> (4 * c);
          pairs[c] = multiply_pairs<T>((both & 0x00080008) << 12 | (both & 0x00070007) << (kBf16 ? 6 : 9), times);
        }
      }
    } else {
      const uint4& half = codes[quarter / 2];
      const std::uint32_t words[2] = {quarter % 2 == 0 ? half.x : half.z, quarter % 2 == 0 ? half.y : half.w};
#pragma unroll
      for (int c = 0; c < 4; ++c) pairs[c] = pair_of_bytes<T>(words[c / 2], c % 2, zero);
    }
  }

 private:
  // Converts the bytes `which` and which + 2 of a word.
  template <class T>
  __device__ static std::uint32_t pair_of_bytes(std::uint32_t word, int which, float zero) {
    constexpr bool kBf16 = std::is_same_v<T, Bf16>;
    if constexpr (kFormat == Format::f8) {  // converted like e2m1; NaN becomes 480
      constexpr float kTimes = kBf16 ? 0x1p120f : 0x1p8f;
      const std::uint32_t both = which == 0 ? word << 8 : word;
      return multiply_pairs<T>((both & 0x80008000) | (kBf16 ? both >> 4 & 0x07f007f0 : both >> 1 & 0x3f803f80),
                               pack<T>(kTimes, kTimes));
    } else {
      const std::uint32_t both = (word ^ 0x80808080) >> (8 * which) & 0x00ff00ff;  // adds 128 to each byte
      if constexpr (kBf16) {
        const float base = 0x1p23f + 128 + zero;
        return pack<T>(bits_to_float(0x4b000000 | (both & 0xff)) - base, bits_to_float(0x4b000000 | both >> 16) - base);
      } else {
        return subtract_pairs<T>(both | 0x64006400, pack<T>(1152 + zero, 1152 + zero));
      }
    }
  }
};

// Adds the sums of one step, times their scales, to `sum`.
template <class T, Format kFormat, class S>
__device__ inline void multiply_step(const CodeRing<kFormat, S>& ring, std::int64_t step, int tall,
                                     float (&part)[S::kN / 2], float (&sum)[S::kN / 2]) {
  using At = Stage<kFormat, S>;
  const unsigned char* const x = ring.stages.at(step);
  const int r = tall * kTileRows + warp() % 4 * 16 + lane() / 4;  // this row and row r + 8
  const RowCodes<kFormat, S> top(x + At::kCodesAt, r), bottom(x + At::kCodesAt, r + 8);
  const auto scale_of = [&](int row, int quarter) {
    return reinterpret_cast<const GroupScale*>(x + At::kScalesAt + row * kScaleBytes)[quarter];
  };
  const auto zero_of = [&](GroupScale scale) { return ring.p.w.zeros ? scale.offset : ring.p.w.zero; };
  const bool whole = ring.scales_each == 1;
  std::uint32_t a[kQuarters][2][4];
#pragma unroll
  for (int q = 0; q < kQuarters; ++q) {
    const GroupScale above = scale_of(r, whole ? 0 : q), below = scale_of(r + 8, whole ? 0 : q);
    std::uint32_t first[4], second[4];
    top.template numbers<T>(q, zero_of(above), first);
    bottom.template numbers<T>(q, zero_of(below), second);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      a[q][k][0] = first[2 * k];
      a[q][k][1] = second[2 * k];
      a[q][k][2] = first[2 * k + 1];
      a[q][k][3] = second[2 * k + 1];
    }
    const unsigned char* columns = x + q / 2 * XTiles<T, S, kStepColumns>::kTileBytes + q % 2 * 64;
    begin_products();
#pragma unroll
    for (int k = 0; k < 2; ++k)
      multiply_tiles<T, S::kN>(part, a[q][k], operand(columns + k * 32), k > 0 || (whole && q > 0));
    commit_products();
    if (whole && q < kQuarters - 1) continue;
    wait_products<0>(part);
#pragma unroll
    for (int i = 0; i < S::kN / 2; ++i) sum[i] = fmaf(i / 2 % 2 == 0 ? above.scale : below.scale, part[i], sum[i]);
  }
#pragma unroll
  for (int q = 0; q < kQuarters; ++q)
#pragma unroll
    for (int k = 0; k < 2; ++k) keep_until_here(a[q][k]);
}

// Computes the rows [row, row + kN) of x, for outputs from `output` on.
template <class T, Format kFormat, class S>
__device__ void code_tile(const MatmulParams& p, std::int64_t row, std::int64_t output, const Part& part) {
  constexpr int kAhead = S::kStages - 1;
  unsigned char* memory = memory_of_tiles();
  const int tall = thread() / kWarpgroup % S::kTall;
  float* const together = totals_of(memory);
  const CodeStages<kFormat, S> stages(memory, part);
  const CodeRing<kFormat, S> ring(p, stages, output);
  float products[S::kN / 2], sum[S::kN / 2], total[S::kN / 2];
#pragma unroll
  for (int i = 0; i < S::kN / 2; ++i) products[i] = total[i] = 0;

  // Copies of codes start while previous kernels are still running.
  for (int i = 0; i < kAhead; ++i) ring.begin(i);
  wait_for_kernels();
  const XTiles<T, S, kStepColumns> x_tiles(p, ring.me, row);
  const auto begin_x = [&](std::int64_t i) {
    if (stages.valid(i)) x_tiles.begin(stages.at(i), stages.column(i));
    commit_copies();
  };
  for (int i = 0; i < kAhead; ++i) begin_x(i);

  std::int64_t step = 0;
  add_up_slices<S, kStepColumns>(part, total, together, sum, [&](int steps) {
#pragma unroll
    for (int i = 0; i < S::kN / 2; ++i) sum[i] = 0;
#pragma unroll 1
    for (int i = 0; i < steps; ++i, ++step) {
      wait_copies<kAhead - 1>();
      show_to_products();
      named_barrier(1 + S::team(), S::kTeamThreads);
      ring.begin(step + kAhead);  // overwrites the previous step
      begin_x(step + kAhead);
      multiply_step<T>(ring, step, tall, products, sum);
    }
  });
  if (!has_all_slices<S>(part, total)) return;
  p.y.format == Format::f32 ? store_totals<float, S>(p, row, output, total, together)
                            : store_totals<T, S>(p, row, output, total, together);
}

// Kernel for experts, and for a single product in which a thread block has `slices_each` slices of a tile.
template <class T, Format kFormat, int kN, int kTall, int kTeams, int kStages>
__global__ void __launch_bounds__(Shape<kN, kTall, kTeams, kStages>::kThreads,
                                  (CodeStages<kFormat, Shape<kN, kTall, kTeams, kStages>>::kBlocks))
    wgmma_code_kernel(ExpertChunk chunk, int slices_each) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  using S = Shape<kN, kTall, kTeams, kStages>;
  MatmulParams p = chunk.product;
  if (chunk.experts == 0) p = p.y.format == Format::f32 ? of_head<T, float>(p) : of_head<T, T>(p);
  TileOrigin origin;
  Part part;
  if (find_tile<S>(chunk, slices_each, p, origin, part))
    code_tile<T, kFormat, S>(p, origin.row, origin.output, part);
#endif
}

// Calls body(format); the type of the argument is the format of the codes.
template <class Body>
void for_codes(Format format, Body&& body) {
  if (format == Format::q4) return body(std::integral_constant<Format, Format::q4>());
  if (format == Format::e2m1) return body(std::integral_constant<Format, Format::e2m1>());
  if (format == Format::f8) return body(std::integral_constant<Format, Format::f8>());
  body(std::integral_constant<Format, Format::q8>());
}

// Calls body() with kN, kTall, kTeams and kStages for this number of rows of x per thread block. In a single
// product, several thread blocks share a tile; for experts, the teams of one thread block share it.
template <class Body>
void for_shape(std::int64_t m, bool experts, Body&& body) {
  if (!experts && m <= 8) return body.template operator()<8, 1, 1, 6>();
  if (!experts && m <= 32) return body.template operator()<32, 1, 1, 5>();
  if (m <= 8) return body.template operator()<8, 1, 4, 4>();
  if (m <= 32) return body.template operator()<32, 1, 4, 3>();
  if (experts && m <= 128) return body.template operator()<64, 1, 2, 4>();
  body.template operator()<64, 2, 1, 5>();
}

// rows_each: number of rows of x per thread block.
void run(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each) {
  const MatmulParams& p = chunk.product;
  for_activation(p.x.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      for_codes(p.w.format, [&](auto format) {
        for_shape(rows_each, chunk.experts > 0, [&]<int kN, int kTall, int kTeams, int kStages>() {
          constexpr Format kFormat = decltype(format)::value;
          using S = Shape<kN, kTall, kTeams, kStages>;
          launch_tiles<S, CodeStages<kFormat, S>>(
              stream, wgmma_code_kernel<T, kFormat, kN, kTall, kTeams, kStages>, chunk);
        });
      });
  });
}

}  // namespace

void wgmma_codes(StreamHandle stream, const MatmulParams& p) { run(stream, {p, nullptr, 0, {}}, p.m); }
void wgmma_code_experts(StreamHandle stream, const ExpertChunk& chunk, std::int64_t rows_each) {
  run(stream, chunk, rows_each);
}

}  // namespace octavo::cuda
