// Functions with which one warp processes its 16 rows of a piece, in kernels that have complete keys and
// values in shared memory (attention.cu, attention_wgmma.cu). They compute scores, probabilities and weighted
// values, and merge pieces. Every sum has a fixed order, so that a row has the same bits in both kernels.
//
// Products and results have the layout of D in mma.h and wgmma.h. A lane holds the rows lane / 4 and lane /
// 4 + 8, and two columns of every tile of 8 columns: [tile][2 * i + e].
#pragma once

#include "kernels/cuda/attention_tiles.h"

namespace octavo::cuda {

constexpr int kTokenTiles = kPieceTokens / 8;
constexpr int kParts = 4;  // parts of a piece; probabilities are summed separately in each part
constexpr int kPartTiles = kTokenTiles / kParts;
// Value of LaneRows::end for a row that does not exist. Such a row sees all tokens, so that no piece is
// masked because of it.
constexpr int kAllTokens = 0x7fffffff;

// The two rows of a unit that a lane holds, and the tokens [begin, end) that each row sees.
struct LaneRows {
  int row[2], begin[2], end[2];

  // `first` is the index in the unit of the warp's first row.
  __device__ LaneRows(const SequenceRows& rows, const AttentionUnit& unit, int first) {
    for (int i = 0; i < 2; ++i) {
      row[i] = unit.row_begin + first + lane() / 4 + 8 * i;
      const bool valid = row[i] < unit.row_end;
      begin[i] = valid ? rows.begin(row[i]) : 0;
      end[i] = valid ? rows.end(row[i]) : kAllTokens;
    }
  }
};

// Converts products to scores. Tokens that a row does not see get minus infinity. `first_tile` is the index
// of the warp's first tile of 8 tokens in the piece. Returns the factor by which scores must still be
// multiplied.
template <int kTiles>
__device__ inline float make_scores(const AttentionParams& p, const SequenceRows& sequence, int head,
                                    const LaneRows& rows, int piece, int first_tile,
                                    float (&scores)[kTiles][4]) {
  const int first = piece * kPieceTokens + first_tile * 8 + lane() % 4 * 2;
  const auto each = [&](auto change) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[n][e] = change(scores[n][e], e / 2, first + n * 8 + e % 2);
  };
  const bool plain = p.slopes == nullptr && p.distance_bias.numbers == nullptr && p.soft_cap <= 0;
  if (p.distance_bias.numbers != nullptr) {
    const DistanceBias bias[2] = {{p, sequence, head, rows.row[0]}, {p, sequence, head, rows.row[1]}};
    each([&](float product, int i, int token) { return product * p.scale + bias[i].of(token); });
  } else if (!plain) {
    const float slopes[2] = {slope_of(p, head, rows.row[0]), slope_of(p, head, rows.row[1])};
    each([&](float product, int i, int token) { return score_of(p, product, slopes[i], token - rows.end[i] + 1); });
  }
  const int past = (piece + 1) * kPieceTokens;
  if (piece * kPieceTokens < rows.begin[0] || piece * kPieceTokens < rows.begin[1] || past > rows.end[0] ||
      past > rows.end[1])
    each([&](float score, int i, int token) {
      return token >= rows.begin[i] && token < rows.end[i] ? score : kMinusInfinity;
    });
  return plain ? p.scale : 1;
}

// Finds the largest score of each row. Compares in several independent chains, so that a comparison does
// not wait for the previous one.
template <int kTiles>
__device__ inline void find_most(const float (&scores)[kTiles][4], float (&most)[2]) {
  static_assert(kTiles >= 4);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float chains[4];
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const float larger = fmaxf(scores[n][2 * i], scores[n][2 * i + 1]);
      chains[n % 4] = n < 4 ? larger : fmaxf(chains[n % 4], larger);
    }
    most[i] = fmaxf(fmaxf(chains[0], chains[1]), fmaxf(chains[2], chains[3]));
    most[i] = fmaxf(most[i], __shfl_xor_sync(kAllLanes, most[i], 1));
    most[i] = fmaxf(most[i], __shfl_xor_sync(kAllLanes, most[i], 2));
  }
}

// Computes probabilities 2^(scale_of_2 * (score - most)). `sum` receives the sum of each row, added part by
// part.
template <int kTiles>
__device__ inline void make_probabilities(float (&scores)[kTiles][4], const float (&most)[2], float scale_of_2,
                                          float (&sum)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float shift =
        most[i] == kMinusInfinity ? 0 : most[i] * -scale_of_2;  // 0 if the row sees no token of the piece
    sum[i] = 0;
#pragma unroll
    for (int first = 0; first < kTiles; first += kPartTiles) {
      float total = 0;
#pragma unroll
      for (int n = first; n < first + kPartTiles; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          total += scores[n][2 * i + e] = power_of_2(fmaf(scores[n][2 * i + e], scale_of_2, shift));
      total += __shfl_xor_sync(kAllLanes, total, 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      sum[i] += total;
    }
  }
}

// Converts probabilities to the layout of A in mma.h. packed[k] has the tokens 16k to 16k + 15.
template <class T, int kTiles, int kSteps>
__device__ inline void pack_probabilities(const float (&probabilities)[kTiles][4], std::uint32_t (&packed)[kSteps][4]) {
#pragma unroll
  for (int k = 0; k < kTiles / 2; ++k)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      packed[k][i] = pack<T>(probabilities[2 * k][2 * i], probabilities[2 * k][2 * i + 1]);
      packed[k][2 + i] = pack<T>(probabilities[2 * k + 1][2 * i], probabilities[2 * k + 1][2 * i + 1]);
    }
}

// Computes kTiles * 8 columns of a piece's weighted values in one warp. at(token, column) returns the
// address of a value in shared memory; eight columns are contiguous.
template <class T, int kTiles, class At>
__device__ inline void mix_values(const std::uint32_t (&probabilities)[kTokenTiles / 2][4], At at, bool finite_alone,
                                  float (&mixed)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) mixed[n][e] = 0;
#pragma unroll
  for (int k = 0; k < kTokenTiles / 2; ++k)
#pragma unroll
    for (int n = 0; n < kTiles; n += 2) {
      std::uint32_t b[4];
      load_matrices_transposed(b, at(k * 16 + lane() % 16, n * 8 + lane() / 16 * 8));
      if (finite_alone)
        for (std::uint32_t& numbers : b) numbers = finite<T>(numbers);
      multiply_add<T>(mixed[n], probabilities[k], {b[0], b[1]});
      multiply_add<T>(mixed[n + 1], probabilities[k], {b[2], b[3]});
    }
}

// Returns a zero that the compiler cannot predict. Computations that depend on the zero stay inside the
// loop, so they occupy no registers outside of the loop.
__device__ inline int hidden_zero() {
  int zero = 0;
#ifdef __CUDACC__
  asm volatile("" : "+r"(zero));
#endif
  return zero;
}

// Repairs the weighted sum if a result is not finite, because 0 times infinity would also change rows that
// do not see the token. It repeats the sum without infinite and NaN values, and rows that see such a value
// get NaN.
template <class T, int kTiles, class At>
__device__ inline void mend_values(const LaneRows& rows, int piece,
                                   const std::uint32_t (&probabilities)[kTokenTiles / 2][4], At at,
                                   float (&mixed)[kTiles][4]) {
  float zero[4] = {0, 0, 0, 0};  // zero stays 0 if all numbers are finite
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) zero[e] = fmaf(mixed[n][e], 0, zero[e]);
  if (__ballot_sync(kAllLanes, (zero[0] + zero[1]) + (zero[2] + zero[3]) != 0) == 0) return;
  const int zero_token = hidden_zero();
  const auto value_at = [&](int token, int column) { return at(token + zero_token, column); };
  mix_values<T>(probabilities, value_at, true, mixed);
#pragma unroll 1
  for (int token = 0; token < kPieceTokens; ++token)
#pragma unroll
    for (int e = 0; e < kTiles * 4; ++e) {
      const int seen_at = piece * kPieceTokens + token, i = e / 2 % 2;
      const T* value = value_at(token, e / 4 * 8) + lane() % 4 * 2 + e % 2;
      if (seen_at >= rows.begin[i] && seen_at < rows.end[i] && not_finite<T>(value->bits)) mixed[e / 4][e % 4] = NAN;
    }
}

// States of the two rows of a lane, for the lane's value columns.
template <int kTiles>
struct LaneState {
  float max[2] = {kMinusInfinity, kMinusInfinity}, sum[2] = {0, 0};
  float values[kTiles][4];

  __device__ LaneState() {
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) values[n][e] = 0;
  }

  // Merges the maxima and sums of a piece into the states. `weights` receives the arguments for merge_values.
  __device__ void merge_sums(const float (&piece_max)[2], const float (&piece_sum)[2], Weights (&weights)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      weights[i] = weigh(max[i], piece_max[i]);
      max[i] = weights[i].max;
      sum[i] = merged(sum[i], piece_sum[i], weights[i]);
    }
  }
  // Merges value tiles of the lane; `first` is the index of the first tile.
  template <int kMixed>
  __device__ void merge_values(int first, const float (&mixed)[kMixed][4], const Weights (&weights)[2]) {
#pragma unroll
    for (int n = 0; n < kMixed; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) values[first + n][e] = merged(values[first + n][e], mixed[n][e], weights[e / 2]);
  }

  template <class T>
  __device__ void store(const AttentionParams& p, const SequenceRows& rows, const LaneRows& mine, int past_row, int head,
                        int first_column) const {
    const int dim = p.cache.layout.head_dim;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = mine.row[i];
      if (row >= past_row) continue;
      T* out = static_cast<T*>(p.out.data) + element_at(rows.query(row), p.out.stride, rows.column(row, head, dim));
      const float inverse = inverse_sum(p, head, row, max[i], sum[i]);
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = first_column + n * 8 + lane() % 4 * 2 + e;
          if (column < dim) out[column] = from_float<T>(values[n][2 * i + e] * inverse);
        }
    }
  }
};

// Addresses of the states of the two rows of a lane. An address is null if the row does not exist or its
// state is not written.
struct LaneStates {
  float* state[2] = {nullptr, nullptr};

  __device__ LaneStates(const AttentionParams& p, const AttentionUnit& unit, const SequenceRows& rows,
                        const LaneRows& mine, int head, int piece) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = mine.row[i];
      if (unit.merge < 0 || row >= unit.row_end) continue;
      if (rows.shared == nullptr) {
        state[i] = state_of(p, p.work.merges[unit.merge], head, row, piece);
      } else {
        const SharedQuery& query = rows.shared[row / rows.group];
        state[i] = state_of(p, p.work.merges[query.merge], head, query.row + row % rows.group, piece);
      }
    }
  }

  __device__ void store_sums(int dim, const float (&piece_max)[2], const float (&piece_sum)[2]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (state[i] == nullptr || lane() % 4 != 0) continue;
      state[i][dim] = piece_max[i];
      state[i][dim + 1] = piece_sum[i];
    }
  }
  template <int kTiles>
  __device__ void store_values(int dim, int first_column, const float (&mixed)[kTiles][4]) const {
#pragma unroll
    for (int e = 0; e < kTiles * 4; ++e) {
      const int column = first_column + e / 4 * 8 + lane() % 4 * 2 + e % 2;
      if (state[e / 2 % 2] != nullptr && column < dim) state[e / 2 % 2][column] = mixed[e / 4][e % 4];
    }
  }
};

}  // namespace octavo::cuda
