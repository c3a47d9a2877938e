#include "kernels/cuda/attention_plan.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace octavo::cuda {
namespace {

// Maximum number of rounds in which the device runs all thread blocks. Tiles are not split so far that more
// rounds are needed.
constexpr std::int64_t kMostRounds = 3;
constexpr std::int64_t kBeginning = 1;  // fixed cost of an AttentionUnit, in pieces
// With this number of rows, the states of a piece, which are written and read, have the same number of bytes
// as the keys and values of the piece.
constexpr std::int64_t kRowsOfAPiece = kPieceTokens / 2;

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

AttentionSchedule::AttentionSchedule(const AttentionLimits& limits, std::int64_t blocks_at_a_time,
                                     std::int64_t states, bool hopper)
    : limits_(limits),
      wide_by_wgmma_(octavo::cuda::wide_by_wgmma(hopper, limits.kv)),
      wide_rows_(wide_by_wgmma_ ? kWgmmaRows : wide_rows(limits.kv.head_dim, limits.kv.values_in_keys > 0)),
      blocks_at_a_time_(blocks_at_a_time),
      most_blocks_(kMostRounds * blocks_at_a_time),
      states_(states),
      group_(limits.q_heads / limits.kv.kv_heads) {
  most_tiles_ = 2 * std::int64_t{limits.max_sequences} +
                limits.max_tokens * group_ / wide_rows_;
  most_units_ = std::max(most_tiles_, most_blocks_ / limits.kv.kv_heads);
  tiles_.reserve(static_cast<std::size_t>(most_tiles_));
  merges_.reserve(static_cast<std::size_t>(most_tiles_));
  units_.reserve(static_cast<std::size_t>(most_units_));
}

void AttentionSchedule::fill(const AttentionShape& shape) {
  units_.clear();
  merges_.clear();
  states_used_ = merge_rows_max_ = 0;
  cut(shape);
  const std::int32_t pieces = pieces_to_a_unit();
  for (const Tile& tile : tiles_)
    if (tile.row_end - tile.row_begin <= kNarrowRows) add(tile, pieces);
  narrow_units_ = std::ssize(units_);
  for (const Tile& tile : tiles_)
    if (tile.row_end - tile.row_begin > kNarrowRows) add(tile, pieces);
  if (shape.recorded) pad(std::ssize(shape.lengths));
  CHECK(std::ssize(units_) <= most_units_, "{} units, room for {}", units_.size(), most_units_);
}

void AttentionSchedule::cut(const AttentionShape& shape) {
  tiles_.clear();
  const auto sequences = static_cast<std::int32_t>(shape.lengths.size());
  CHECK(shape.query_starts.size() == shape.lengths.size() + 1 && sequences <= limits_.max_sequences,
        "{} sequences, room for {}", sequences, limits_.max_sequences);
  CHECK(shape.query_starts.back() <= limits_.max_tokens, "{} tokens, room for {}", shape.query_starts.back(),
        limits_.max_tokens);
  for (std::int32_t s = 0; s < sequences; ++s) {
    const auto i = static_cast<std::size_t>(s);
    const std::int64_t length = shape.lengths[i], queries = shape.query_starts[i + 1] - shape.query_starts[i];
    // Queries of cross attention are no tokens of the sequence, so there may be more of them.
    CHECK(0 <= queries && (queries <= length || !limits_.causal) && length <= limits_.max_length,
          "{} queries of {} tokens, at most {}", queries, length, limits_.max_length);
    const std::int64_t rows = queries * group_;
    CHECK(!shape.recorded || queries <= 1, "{} queries of a sequence in a recorded step", queries);
    const std::int64_t tile_rows = rows_of_tiles(rows);
    // Plans the last rows first, because they see the most tokens and take longest.
    for (std::int64_t t = quotient_up(rows, tile_rows) - 1; t >= 0; --t) {
      const std::int64_t begin = t * tile_rows, end = std::min(begin + tile_rows, rows);
      const std::int64_t first = length - queries + begin / group_;  // position of the first row
      const std::int64_t last = length - queries + (end - 1) / group_;
      const std::int64_t ahead = limits_.window > 0 ? std::min(length, last + limits_.window) : length;
      const std::int64_t seen = limits_.causal ? last + 1 : ahead;
      const std::int64_t unseen =
          limits_.window > 0 ? std::max<std::int64_t>(0, first - limits_.window + 1) : 0;
      tiles_.push_back({s, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end),
                        static_cast<std::int32_t>(unseen / kPieceTokens),
                        static_cast<std::int32_t>(quotient_up(seen, kPieceTokens))});
    }
  }
}

// Returns the number of pieces per unit with which the device ends earliest, with at most kMostRounds rounds
// of thread blocks. If no number satisfies this, a unit has all pieces of its tile.
std::int32_t AttentionSchedule::pieces_to_a_unit() const {
  std::int32_t most = 1;
  bool wide = false;
  for (const Tile& tile : tiles_) {
    most = std::max(most, tile.pieces());
    wide = wide || tile.row_end - tile.row_begin > kNarrowRows;
  }
  const std::int64_t at_a_time =
      std::max<std::int64_t>(blocks_at_a_time_ / (wide && wide_by_wgmma_ ? kBlocksPerProcessor : 1), 1);
  std::int32_t best = most;
  std::int64_t best_time = std::numeric_limits<std::int64_t>::max();
  for (std::int32_t units = 1; units <= most; ++units) {
    const auto pieces = static_cast<std::int32_t>(quotient_up(most, units));
    std::int64_t blocks = 0, shared_rows = 0;
    for (const Tile& tile : tiles_) {
      blocks += quotient_up(tile.pieces(), pieces) * limits_.kv.kv_heads;
      if (tile.pieces() > pieces) shared_rows = std::max<std::int64_t>(shared_rows, tile.row_end - tile.row_begin);
    }
    if (units > 1 && blocks > most_blocks_) break;
    const std::int64_t time = quotient_up(blocks, at_a_time) *
                              (pieces * (kRowsOfAPiece + shared_rows) + kBeginning * kRowsOfAPiece);
    if (time < best_time) {
      best = pieces;
      best_time = time;
    }
  }
  return best;
}

void AttentionSchedule::add(const Tile& tile, std::int32_t pieces_to_a_unit) {
  const std::int64_t rows = tile.row_end - tile.row_begin;
  const std::int64_t states = rows * tile.pieces() * limits_.kv.kv_heads;
  if (tile.pieces() <= pieces_to_a_unit || states_used_ + states > states_) {
    units_.push_back({tile.sequence, tile.row_begin, tile.row_end, tile.piece_begin, tile.piece_end, -1});
    return;
  }
  const auto merge = static_cast<std::int32_t>(merges_.size());
  merges_.push_back(
      {tile.sequence, tile.row_begin, tile.row_end, tile.piece_begin, tile.piece_end, states_used_});
  states_used_ += states;
  merge_rows_max_ = std::max(merge_rows_max_, rows);
  for (std::int32_t piece = tile.piece_begin; piece < tile.piece_end; piece += pieces_to_a_unit)
    units_.push_back({tile.sequence, tile.row_begin, tile.row_end, piece,
                      std::min(piece + pieces_to_a_unit, tile.piece_end), merge});
}

// Adds empty units up to the maximum that decoding of this number of sequences can need. Tiles are divided
// only while the number of thread blocks is at most most_blocks_.
void AttentionSchedule::pad(std::int64_t sequences) {
  const std::int64_t tile_rows = rows_of_tiles(group_);
  const std::int64_t tiles = sequences * quotient_up(group_, tile_rows);
  const std::int64_t filling = most_blocks_ / limits_.kv.kv_heads;
  const std::int64_t merges = std::min(filling / 2, tiles);
  CHECK(std::ssize(units_) <= std::max(tiles, filling) && std::ssize(merges_) <= merges,
        "{} units and {} merges of {} tiles", units_.size(), merges_.size(), tiles);
  units_.resize(static_cast<std::size_t>(std::max(tiles, filling)));
  merges_.resize(static_cast<std::size_t>(merges));
  merge_rows_max_ = std::min(group_, tile_rows);
  narrow_units_ = group_ <= kNarrowRows ? std::ssize(units_) : 0;
}

}  // namespace octavo::cuda
