#include "kernels/cpu/attention_unit.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

std::int64_t rows_of(const AttentionCall& call, const AttentionUnit& unit) {
  std::int64_t rows = 0;
  for (const AttentionPart& part : call.plan.parts(unit)) rows += part.rows();
  return rows;
}

}  // namespace

AttentionUnitRun::AttentionUnitRun(const AttentionCall& call, const AttentionUnit& unit,
                                   AttentionScratch& scratch)
    : call_(call),
      unit_(unit),
      scratch_(scratch),
      rows_(rows_of(call, unit)),
      in_use_(call.matrix),
      widened_(call.packed() && (rows_ > call.kernels.tile_rows || call.values_in_keys() ||
                                 call.matrix != nullptr || call.stored.layout.folds > 1)),
      own_values_(widened_ || call.values_in_keys()),
      kv_(widened_ ? call.wide : call.stored) {
  Row* to = row_;
  for (const AttentionPart& part : call.plan.parts(unit))
    for (std::int32_t row = part.row_begin; row < part.row_end; ++row) {
      const std::int64_t position = call.plan.position(part.sequence, row);
      std::int64_t begin =
          call.args.window > 0 ? std::max<std::int64_t>(0, position - call.args.window + 1) : 0;
      if (call.args.chunk > 0) begin = position / call.args.chunk * call.args.chunk;
      *to++ = {part.sequence, row, part.merge, position, begin,
               call.plan.seen_end(part.sequence, row, call.args.window)};
    }
}

void AttentionUnitRun::run() {
  load_queries();
  const std::int64_t tile_rows = call_.tile_rows();
  for (std::int64_t piece = unit_.piece_begin; piece < unit_.piece_end; ++piece) {
    if (rows_ <= tile_rows && !own_values_) {
      attend(piece, {unit_.head_begin, unit_.head_end, 0, rows_});
      continue;
    }
    for (std::int64_t head = unit_.head_begin; head < unit_.head_end; ++head) {
      if (own_values_) prepare(piece, head);
      for (std::int64_t row = 0; row < rows_; row += tile_rows)
        attend(piece, {head, head + 1, row, std::min(row + tile_rows, rows_)});
    }
  }
  for (std::int64_t head = unit_.head_begin; head < unit_.head_end; ++head)
    for (std::int64_t row = 0; row < rows_; ++row)
      if (row_[row].merge < 0)
        call_.write(head, row_[row].sequence, row_[row].row, scratch_.states[at(head, row)]);
}

void AttentionUnitRun::load_queries() {
  const View& q = call_.args.q;
  for (std::int64_t head = unit_.head_begin; head < unit_.head_end; ++head)
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t i = at(head, row);
      const std::byte* from = static_cast<const std::byte*>(q.data) +
                              call_.element(q, call_.dim(), head, row_[row].sequence, row_[row].row) *
                                  static_cast<std::int64_t>(size_of(q.dtype));
      if (call_.args.cache.spec.rotated()) from = rotated_query(from);
      std::byte* to = scratch_.q + i * q_stride();
      if (call_.dot) {
        const auto bytes = static_cast<std::size_t>(call_.dim() * call_.x_bytes());
        std::memcpy(to, from, bytes);
        std::memset(to + bytes, 0, static_cast<std::size_t>(q_stride()) - bytes);
      } else {
        call_.kernels.widen(from, call_.format, reinterpret_cast<float*>(to), call_.dim());
      }
      scratch_.states[i] = {scratch_.values + i * kv_.layout.padded_dim, kNoScore, 0};
      std::fill_n(scratch_.states[i].values, kv_.layout.padded_dim, 0.0f);
    }
}

// Returns a rotated head of a query, in the format of the activations. The next call overwrites it.
const std::byte* AttentionUnitRun::rotated_query(const std::byte* q) const {
  alignas(64) float values[kMaxHeadDim];
  call_.kernels.widen(q, call_.format, values, call_.dim());
  rotate_kv(values, call_.dim());
  call_.kernels.narrow(values, nullptr, call_.format, scratch_.cleaned, call_.dim());
  return scratch_.cleaned;
}

// Processes one piece of the keys, one tile of rows after another. It switches to the next head after each
// run of groups (run_groups).
void AttentionUnitRun::attend(std::int64_t piece, const Tiles& tiles) {
  const Groups groups = visible(piece, tiles);
  if (groups.begin < groups.end) {
    locate(piece, groups);
    const auto for_runs = [&](std::int64_t run, auto&& body) {
      for (std::int64_t g = groups.begin, end; g < groups.end; g = end) {
        end = std::min((g / run + 1) * run, groups.end);
        for (std::int64_t head = tiles.head_begin; head < tiles.head_end; ++head) body(head, g, end);
      }
    };
    for_runs(run_groups(tiles, groups_at_once()),
             [&](std::int64_t head, std::int64_t begin, std::int64_t end) {
               for (std::int64_t g = begin; g < end; g += groups_at_once()) score(tiles, groups, head, g);
             });
    for (std::int64_t head = tiles.head_begin; head < tiles.head_end; ++head) {
      if (call_.args.cache.spec.scaled()) load_scales(groups, head);
      for (std::int64_t row = tiles.row_begin; row < tiles.row_end; ++row) softmax(piece, groups, head, row);
    }
    for_runs(run_groups(tiles, 1), [&](std::int64_t head, std::int64_t begin, std::int64_t end) {
      mix(tiles, groups, head, begin, end);
    });
  }
  for (std::int64_t head = tiles.head_begin; head < tiles.head_end; ++head) {
    const bool clean = finite(head, groups);
    for (std::int64_t row = tiles.row_begin; row < tiles.row_end; ++row) {
      if (!clean) mix_clean(piece, groups, head, row);
      keep(piece, head, row);
    }
  }
}

AttentionUnitRun::Groups AttentionUnitRun::visible(std::int64_t piece, const Tiles& tiles) const {
  std::int64_t begin = INT64_MAX, end = 0, whole_begin = 0, whole_end = INT64_MAX;
  for (std::int64_t row = tiles.row_begin; row < tiles.row_end; ++row) {
    begin = std::min(begin, row_[row].begin);
    whole_begin = std::max(whole_begin, row_[row].begin);
    end = std::max(end, row_[row].end);
    whole_end = std::min(whole_end, row_[row].end);
  }
  const auto in_piece = [&](std::int64_t token) {
    return std::clamp<std::int64_t>(token - piece * kPieceTokens, 0, kPieceTokens);
  };
  const auto up = [](std::int64_t tokens) { return (tokens + kGroupTokens - 1) / kGroupTokens; };
  return {in_piece(begin) / kGroupTokens, up(in_piece(end)), up(in_piece(whole_begin)),
          in_piece(whole_end) / kGroupTokens};
}

void AttentionUnitRun::locate(std::int64_t piece, const Groups& groups) {
  const KvLayer& cache = call_.args.cache;
  for (std::int64_t g = groups.begin; g < groups.end; ++g) {
    const std::int64_t group = piece * kPieceGroups + g;
    const std::int32_t block = call_.plan.block(row_[0].sequence, group / kv_.layout.groups);
    CHECK(block >= 0 && block < cache.blocks, "block {} of {}", block, cache.blocks);
    blocks_[g] = cache.data + block * cache.stride_bytes;
    in_block_[g] = group % kv_.layout.groups;
  }
}

// Converts the numbers of a group of keys or values to bf16.
void AttentionUnitRun::widen(const std::byte* from, std::int64_t folded, std::byte* to,
                             std::int64_t numbers) const {
  const Packed format = call_.stored.dtype == DType::f8_e4m3 ? Packed::e4m3 : Packed::i8;
  if (call_.stored.layout.folds > 1) {
    call_.kernels.unfold(from, folded, scratch_.unfolded, numbers);
    from = scratch_.unfolded;
  }
  call_.kernels.widen_packed(from, format, to, numbers);
}

// Converts the keys and values of a piece, if any row sees them. Numbers of 8 or 4 bits become bf16; values
// that are parts of keys are extracted from the keys.
void AttentionUnitRun::prepare(std::int64_t piece, std::int64_t head) {
  const Groups groups = visible(piece, {head, head + 1, 0, rows_});
  locate(piece, groups);
  const KvLayout& from = call_.stored.layout;
  for (std::int64_t g = groups.begin; g < groups.end; ++g) {
    std::byte* own_values = scratch_.own_values + g * kv_.layout.value_group_bytes;
    if (widened_)
      widen(blocks_[g] + from.keys(head, in_block_[g]), kFoldedKeys,
            scratch_.own_keys + g * kv_.layout.key_group_bytes,
            kGroupTokens * call_.args.cache.spec.head_dim);
    if (call_.values_in_keys()) {
      call_.kernels.values_of_keys(keys(head, g), format_of(kv_.dtype), own_values, call_.value_dim());
    } else {
      widen(blocks_[g] + from.values(head, in_block_[g]), kFoldedValues, own_values,
            kGroupTokens * from.padded_dim);
    }
  }
}

void AttentionUnitRun::load_scales(const Groups& groups, std::int64_t head) {
  constexpr std::int64_t kBytes = kScaleGroupBytes / 2;
  for (std::int64_t g = groups.begin; g < groups.end; ++g) {
    const std::byte* scales = blocks_[g] + call_.stored.layout.scales(head, in_block_[g]);
    std::memcpy(scratch_.key_scales + g * kGroupTokens, scales, kBytes);
    std::memcpy(scratch_.value_scales + g * kGroupTokens, scales + kBytes, kBytes);
  }
}

// Returns the function that computes scores for tiles with this number of rows. Also sets the shape of
// matrix tiles.
TileFunction AttentionUnitRun::score_function(std::int64_t rows) {
  if (call_.matrix == nullptr) return kv_.tiles[rows - 1];
  in_use_.shape(rows, kMatrixBytes);
  return call_.matrix->bf16[rows > kMatrixRows ? 1 : 0];
}

// With matrix tiles, the function processes one group of tokens at a time, because groups are not
// contiguous.
TileFunction AttentionUnitRun::mix_function(std::int64_t rows) {
  static_assert(kGroupTokens == 2 * kShortSteps);
  if (call_.matrix == nullptr) return kv_.tiles[rows - 1];
  in_use_.shape(rows, kMatrixBytes / 2);
  return call_.matrix->short_bf16[rows > kMatrixRows ? 1 : 0];
}

// Multiplies queries by the keys of one group, or of two groups if two groups fit into the two vectors of a
// tile.
void AttentionUnitRun::score(const Tiles& tiles, const Groups& groups, std::int64_t head, std::int64_t g) {
  const KvLayout& layout = kv_.layout;
  const bool pair = 2 * call_.kernels.lanes > kGroupTokens;
  const std::byte* first = keys(head, g);
  const auto second_of = [&](std::int64_t group, const std::byte* one) {
    if (!pair) return vector_bytes();  // In this case the two vectors are the halves of one group.
    return group + 1 < groups.end ? keys(head, group + 1) - one : 0;
  };
  // Prefetches the keys of the next groups or, after the last group, the first values.
  const std::byte* ahead = nullptr;
  std::int64_t ahead_vector_stride = 0;
  if (tiles.head_end - tiles.head_begin > 1) {
    const std::int64_t next = g + run_groups(tiles, groups_at_once());
    if (next < groups.end) {
      ahead = keys(head, next);
      ahead_vector_stride = second_of(next, ahead);
    } else {
      ahead = values(head, groups.begin);
      ahead_vector_stride = groups.begin + 1 < groups.end ? values(head, groups.begin + 1) - ahead : 0;
    }
  }
  score_function(tiles.rows())({
      .x = scratch_.q + at(head, tiles.row_begin) * q_stride(),
      .x_row_stride = q_stride(),
      .x_unit_stride = 4,
      .w = &first,
      .segments = 1,
      .w_offset = 0,
      .steps = call_.dim() / layout.unit,
      .step_stride = kGroupTokens * layout.unit * layout.element_bytes,
      .vector_stride = second_of(g, first),
      .c = scratch_.scores + at(head, tiles.row_begin) * kScoreStride + g * kGroupTokens,
      .c_stride = kScoreStride,
      .accumulate = false,
      .ahead = ahead != nullptr ? &ahead : nullptr,
      .ahead_step_stride = kGroupTokens * layout.unit * layout.element_bytes,
      .ahead_vector_stride = ahead_vector_stride,
  });
}

// Sets the scores of tokens that are not in the `chosen` list of the row's query to minus infinity.
void AttentionUnitRun::leave_chosen(std::int64_t piece, const Groups& groups, std::int64_t head,
                                    std::int64_t row) {
  const View& chosen = call_.args.chosen;
  const std::int64_t query = call_.plan.first_query(row_[row].sequence) + row_[row].row / call_.plan.group();
  const bool by_head = chosen.rank == 3;
  const auto* next = chosen.row<std::int32_t>(query) + (by_head ? head * chosen.stride[1] : 0);
  const auto* const end = next + chosen.size(by_head ? 2 : 1);
  const std::int64_t first = piece * kPieceTokens, run = call_.args.chosen_tokens;
  next = std::lower_bound(next, end, (first + groups.begin * kGroupTokens) / run);
  float* const scores = scratch_.scores + at(head, row) * kScoreStride;
  for (std::int64_t t = groups.begin * kGroupTokens; t < groups.end * kGroupTokens; ++t) {
    while (next < end && *next < (first + t) / run) ++next;
    if (next == end || *next != (first + t) / run) scores[t] = kNoScore;
  }
}

void AttentionUnitRun::softmax(std::int64_t piece, const Groups& groups, std::int64_t head,
                               std::int64_t row) {
  const std::int64_t i = at(head, row);
  const bool scaled = call_.args.cache.spec.scaled();
  if (call_.args.chosen) leave_chosen(piece, groups, head, row);
  results_[i] = {.scores = scratch_.scores + i * kScoreStride,
                 .first = groups.begin * kGroupTokens,
                 .last = groups.end * kGroupTokens,
                 .begin = row_[row].begin - piece * kPieceTokens,
                 .end = row_[row].end - piece * kPieceTokens,
                 .scale = call_.args.scale,
                 .soft_cap = call_.args.soft_cap,
                 .slope = call_.slope(head, row_[row].row),
                 .query = row_[row].end - 1 - piece * kPieceTokens,
                 .distance_bias = call_.distance_bias(head, row_[row].row),
                 .furthest = call_.args.distance_bias ? call_.args.distance_bias.size(1) / 2 : 0,
                 .position = row_[row].position - piece * kPieceTokens,
                 .key_scales = scaled ? scratch_.key_scales : nullptr,
                 .value_scales = scaled ? scratch_.value_scales : nullptr,
                 .p = scratch_.p + i * kScoreStride * call_.x_bytes(),
                 .p_format = call_.dot ? Format::bf16 : Format::f32,
                 .maximum = kNoScore,
                 .sum = 0};
  call_.kernels.softmax(results_[i]);
}

void AttentionUnitRun::mix(const Tiles& tiles, const Groups& groups, std::int64_t head, std::int64_t begin,
                           std::int64_t end) {
  const KvLayout& layout = kv_.layout;
  const std::int64_t width = 2 * call_.kernels.lanes;
  const std::byte* w[kPieceGroups];
  const std::byte* ahead[kPieceGroups];
  for (std::int64_t g = begin; g < end; ++g) {
    w[g - begin] = values(head, g);
    ahead[g - begin] = values(head, std::min(g + end - begin, groups.end - 1));
  }
  const bool fetch = tiles.head_end - tiles.head_begin > 1;
  const TileFunction multiply = mix_function(tiles.rows());
  for (std::int64_t d = 0; d < layout.padded_dim; d += width) {
    const std::int64_t vector_stride = d + call_.kernels.lanes < layout.padded_dim ? vector_bytes() : 0;
    multiply({
        .x = scratch_.p + (at(head, tiles.row_begin) * kScoreStride + begin * kGroupTokens) * call_.x_bytes(),
        .x_row_stride = kScoreStride * call_.x_bytes(),
        .x_unit_stride = 4,
        .w = w,
        .segments = end - begin,
        .w_offset = d * layout.unit * layout.element_bytes,
        .steps = kGroupTokens / layout.unit,
        .step_stride = layout.padded_dim * layout.unit * layout.element_bytes,
        .vector_stride = vector_stride,
        .c = scratch_.piece_values + at(head, tiles.row_begin) * c_stride() + d,
        .c_stride = c_stride(),
        .accumulate = begin > groups.begin,
        .ahead = fetch ? ahead : nullptr,
        .ahead_step_stride = layout.padded_dim * layout.unit * layout.element_bytes,
        .ahead_vector_stride = vector_stride,
    });
  }
}

// Merges a row's result for one piece into the row's state, or stores the result for a later merge.
void AttentionUnitRun::keep(std::int64_t piece, std::int64_t head, std::int64_t row) {
  const std::int64_t i = at(head, row);
  const std::int64_t n = kv_.layout.padded_dim;
  const bool seen = row_[row].begin < (piece + 1) * kPieceTokens && row_[row].end > piece * kPieceTokens;
  AttentionState found{scratch_.piece_values + i * c_stride(), kNoScore, 0};
  if (seen) {
    found.maximum = results_[i].maximum;
    found.sum = results_[i].sum;
  }
  if (row_[row].merge < 0) return call_.kernels.merge(scratch_.states[i], found, n);
  const AttentionMerge& merge = call_.plan.merges()[static_cast<std::size_t>(row_[row].merge)];
  float* to = call_.plan.state(merge.state(head, row_[row].row, piece));
  if (found.sum != 0) std::copy_n(found.values, n, to);
  to[n] = found.maximum;
  to[n + 1] = found.sum;
}

}  // namespace octavo::cpu
