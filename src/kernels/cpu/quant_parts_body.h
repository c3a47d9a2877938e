// Products with quantised weights on matrix tiles, for any instruction set S and tile instructions T.
// Tiles compute exact sums of codes, and vectors scale the sums and add them to the f32 sums as in
// quant_body.h.
#pragma once

#include "kernels/cpu/matrix_tiles.h"
#include "kernels/cpu/quant_body.h"

namespace octavo::cpu {
namespace {

// Codes minus the zero point fit into signed bytes. Codes without a zero point are unsigned.
template <int kKind>
constexpr bool kSignedCodes = kQuantFormats[kKind].zero != 0;

template <class S, int kKind, int... kSteps>
void unpack_group(const std::byte* planes, std::byte* bytes, std::integer_sequence<int, kSteps...>) {
  using Q = Quant<S, kKind>;
  constexpr int kVector = sizeof(Ints<S>), kZero = Q::kFormat.zero;
  (S::store_ints(bytes + 2 * kSteps * kVector, S::sub_bytes(Q::template codes<kSteps>(planes), kZero)), ...);
  (S::store_ints(bytes + (2 * kSteps + 1) * kVector,
                 S::sub_bytes(Q::template codes<kSteps>(planes + Q::kPlane / 2), kZero)),
   ...);
}

template <class S, int kKind>
void unpack_codes(const std::byte* group, std::int64_t groups, std::byte* bytes) {
  using Q = Quant<S, kKind>;
  for (std::int64_t g = 0; g < groups; ++g) {
    unpack_group<S, kKind>(group + Q::kSubBytes, bytes, std::make_integer_sequence<int, 8>{});
    group += Q::kGroupBytes;
    bytes += kQuantGroup * Q::kWidth;
  }
}

// Computes sums of codes over `blocks` blocks of `columns` columns, in the tiles 0 to 3. x passes L1, so that
// W stays in it.
template <class T, bool kSigned, int kHalves>
[[gnu::always_inline]] inline void sum_codes(const std::byte* x, std::int64_t x_row_stride,
                                             const std::byte* w, std::int64_t blocks, std::int64_t columns) {
  T::template zero<0>();
  T::template zero<1>();
  if constexpr (kHalves == 2) {
    T::template zero<2>();
    T::template zero<3>();
  }
  for (std::int64_t i = 0; i < blocks; ++i) {
    T::template load_passing<4>(x, x_row_stride);
    T::template load<6>(w, 2 * kMatrixBytes);
    T::template dot_codes<0, 4, 6, kSigned>();
    T::template load<7>(w + kMatrixBytes, 2 * kMatrixBytes);
    T::template dot_codes<1, 4, 7, kSigned>();
    if constexpr (kHalves == 2) {
      T::template load_passing<5>(x + kMatrixRows * x_row_stride, x_row_stride);
      T::template dot_codes<2, 5, 6, kSigned>();
      T::template dot_codes<3, 5, 7, kSigned>();
    }
    x += columns;
    w += columns / 4 * 2 * kMatrixBytes;
  }
}

template <class T, int kHalves>
[[gnu::always_inline]] inline void store_sums(std::int32_t* sums) {
  T::template store<0>(sums, 2 * kMatrixBytes);
  T::template store<1>(sums + kMatrixRows, 2 * kMatrixBytes);
  if constexpr (kHalves == 2) {
    T::template store<2>(sums + 2 * kMatrixRows * kMatrixRows, 2 * kMatrixBytes);
    T::template store<3>(sums + 2 * kMatrixRows * kMatrixRows + kMatrixRows, 2 * kMatrixBytes);
  }
}

// A part of a group, or groups that share their scales, whose sums are not yet scaled and added to c.
struct SummedPart {
  const std::byte* block;
  const std::byte* group;
  const TileScales* x;
  float* c;
  std::int64_t rows;
};

// Multiplies sums [rows][32] of part kSub of a group by their scales, and adds the products to c.
template <class S, int kKind, int kSub>
[[gnu::always_inline]] inline void join_sums(const SummedPart& part, std::int64_t c_stride,
                                             const std::int32_t* sums) {
  using Q = Quant<S, kKind>;
  constexpr int kSum = Q::kFormat.subs == 1 ? 2 : kSub;
  GroupScales<S> header, w;
  Q::header(part.block, header);
  w = header;
  if constexpr (Q::kTwoLevels) Q::scales(header, part.group, kSub, w);
  const float* const scales = part.x->scale;
  const float* const minus_sums = part.x->minus_sums[kSum];
  float* c = part.c;
  for (std::int64_t r = 0; r < part.rows; ++r, c += c_stride, sums += Q::kWidth) {
    const F<S> scale = S::set(scales[r]);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const F<S> sum = S::floats(S::load_ints(sums + v * S::kLanes));
      F<S> out = S::fma(sum, S::mul(w.scale[v], scale), S::load_f32(c + v * S::kLanes));
      if constexpr (Q::kHasMin) out = S::fma(w.min[v], S::set(minus_sums[r]), out);
      S::store_f32(c + v * S::kLanes, out);
    }
  }
}

template <class S, int kKind>
[[gnu::always_inline]] inline void join_part(const SummedPart& part, std::int64_t c_stride,
                                             const std::int32_t* sums, std::int64_t sub) {
  if constexpr (kQuantFormats[kKind].subs == 2) {
    if (sub == 1) return join_sums<S, kKind, 1>(part, c_stride, sums);
  }
  join_sums<S, kKind, 0>(part, c_stride, sums);
}

// Sums of codes. While tiles sum the codes of one part, vectors scale the sums of the part that is kLag parts
// earlier, which may be a part of the previous tile. If vectors read the newest sums, they would wait long
// for the stores of tiles.
template <class T, class S, int kKind, int kHalves>
class CodeSums {
  using Q = Quant<S, kKind>;
  static constexpr int kSubs = Q::kFormat.subs, kLag = 2;
  static_assert(kLag % kSubs == 0);

 public:
  explicit CodeSums(const CodeTileArgs& args) : args_(args) {}

  // Sums `groups` groups, which share their scales.
  void sum(const SummedPart& part, const std::byte* x, std::int64_t first, std::int64_t groups) {
    for (int sub = 0; sub < kSubs; ++sub, ++count_) {
      const std::int64_t column = first * kQuantGroup + sub * kQuantGroup / kSubs, i = count_ % kLag;
      sum_codes<T, kSignedCodes<kKind>, kHalves>(x + column, args_.x_row_stride,
                                                 args_.w + column * 2 * kMatrixRows,
                                                 groups * kQuantGroup / kSubs / args_.columns, args_.columns);
      if (count_ >= kLag) join_part<S, kKind>(parts_[i], args_.c_stride, sums_[i], sub);
      store_sums<T, kHalves>(sums_[i]);
      parts_[i] = part;
    }
  }
  void join_last() {
    for (std::int64_t i = count_ < kLag ? 0 : count_ - kLag; i < count_; ++i)
      join_part<S, kKind>(parts_[i % kLag], args_.c_stride, sums_[i % kLag], i % kSubs);
  }

 private:
  alignas(64) std::int32_t sums_[kLag][kHalves * kMatrixRows * 2 * kMatrixRows];
  SummedPart parts_[kLag];
  const CodeTileArgs& args_;
  std::int64_t count_ = 0;
};

template <class T, class S, int kKind, int kHalves>
void code_product(const CodeTileArgs& args) {
  using Q = Quant<S, kKind>;
  constexpr std::int64_t kRows = 2 * kMatrixRows;
  CodeSums<T, S, kKind, kHalves> sums(args);
  const std::byte *x = args.x, *ahead = args.ahead;
  const TileScales* scales = args.scales;
  float* c = args.c;
  for (std::int64_t left = args.rows; left > 0; left -= kRows) {
    const std::byte* block = args.block;
    std::int64_t in_block = args.first_group, together = 0;
    for (std::int64_t g = 0; g < args.groups; g += together) {
      if (in_block == args.block_groups) {
        in_block = 0;
        block += args.block_bytes;
      }
      together = args.block_groups - in_block < args.shared ? args.block_groups - in_block : args.shared;
      if (args.groups - g < together) together = args.groups - g;
      for (std::int64_t i = 0; i < together * args.ahead_bytes; i += kMatrixBytes)
        __builtin_prefetch(ahead + i, 0, 2);
      ahead += together * args.ahead_bytes;
      sums.sum({block, block + Q::kHeaderBytes + in_block * Q::kGroupBytes, scales + g, c,
                left < kRows ? left : kRows},
               x, g, together);
      in_block += together;
    }
    x += args.x_tile_stride;
    scales += args.scales_tile_stride;
    c += kRows * args.c_stride;
  }
  sums.join_last();
}

template <class T, class S, int kKind>
void code_product_of_rows(const CodeTileArgs& args) {
  args.rows > kMatrixRows ? code_product<T, S, kKind, 2>(args) : code_product<T, S, kKind, 1>(args);
}

template <class T, class S, int kKind>
constexpr QuantParts quant_parts() {
  return {unpack_codes<S, kKind>, code_product_of_rows<T, S, kKind>};
}

}  // namespace
}  // namespace octavo::cpu
