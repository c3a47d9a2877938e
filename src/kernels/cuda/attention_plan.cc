#include "kernels/cuda/attention_plan.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/cuda/key_widths.h"

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
std::int32_t pieces_of(std::int64_t tokens) {
  return static_cast<std::int32_t>(quotient_up(tokens, kPieceTokens));
}
std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
std::int32_t queries_of(const AttentionShape& shape, std::int32_t sequence) {
  return shape.query_starts[index(sequence) + 1] - shape.query_starts[index(sequence)];
}

}  // namespace

bool shares_prefixes(const AttentionLimits& limits) {
  const KvSpec& kv = limits.kv;
  return limits.causal && kv.values_in_keys == 0 && kv.rate == 1 && kv.dtype != DType::f32 &&
         kv.head_dim <= kMaxTiledKey && 2 * limits.q_heads / kv.kv_heads <= kNarrowRows;
}

AttentionSchedule::AttentionSchedule(const AttentionLimits& limits, std::int64_t blocks_at_a_time,
                                     std::int64_t states, bool hopper)
    : limits_(limits),
      wide_by_wgmma_(octavo::cuda::wide_by_wgmma(hopper, limits.kv)),
      shares_(shares_prefixes(limits)),
      wide_rows_(wide_by_wgmma_ ? kWgmmaRows : wide_rows(limits.kv.head_dim, limits.kv.values_in_keys > 0)),
      blocks_at_a_time_(blocks_at_a_time),
      most_blocks_(kMostRounds * blocks_at_a_time),
      states_(states),
      group_(limits.q_heads / limits.kv.kv_heads),
      prefixes_(limits.kv.block_size, kPieceTokens, index(limits.max_sequences)) {
  most_tiles_ = 2 * std::int64_t{limits.max_sequences} +
                limits.max_tokens * group_ / wide_rows_;
  const std::int64_t tiles = most_tiles_ + most_shared_tiles(limits.max_sequences);
  most_units_ = std::max(tiles, most_blocks_ / limits.kv.kv_heads);
  shared_pieces_.reserve(index(limits.max_sequences));
  merge_.reserve(index(limits.max_sequences));
  tiles_.reserve(static_cast<std::size_t>(tiles));
  merges_.reserve(static_cast<std::size_t>(most_tiles_));
  units_.reserve(static_cast<std::size_t>(most_units_));
  shared_queries_.reserve(static_cast<std::size_t>(most_shared_queries()));
}

void AttentionSchedule::fill(const AttentionShape& shape) {
  check(shape);
  tiles_.clear();
  units_.clear();
  merges_.clear();
  states_used_ = merge_rows_max_ = 0;
  share_prefixes(shape);
  const std::int64_t sequences = std::ssize(shape.lengths), shared_tiles = std::ssize(tiles_);
  cut(shape);
  const std::int64_t most = std::ssize(tiles_) - shared_tiles + most_shared_tiles(sequences);
  const std::int32_t pieces = pieces_to_a_unit(std::max(most, most_blocks_ / limits_.kv.kv_heads));
  for (const Tile& tile : tiles_)
    if (tile.rows() <= kNarrowRows) add(tile, pieces);
  narrow_units_ = std::ssize(units_);
  for (const Tile& tile : tiles_)
    if (tile.rows() > kNarrowRows) add(tile, pieces);
  if (shape.recorded) pad(sequences);
  CHECK(std::ssize(units_) <= most_units_, "{} units, room for {}", units_.size(), most_units_);
}

void AttentionSchedule::check(const AttentionShape& shape) const {
  const auto sequences = static_cast<std::int32_t>(shape.lengths.size());
  CHECK(shape.query_starts.size() == shape.lengths.size() + 1 && sequences <= limits_.max_sequences,
        "{} sequences, room for {}", sequences, limits_.max_sequences);
  CHECK(shape.query_starts.back() <= limits_.max_tokens, "{} tokens, room for {}", shape.query_starts.back(),
        limits_.max_tokens);
  for (std::int32_t s = 0; s < sequences; ++s) {
    const std::int32_t length = shape.lengths[index(s)], queries = queries_of(shape, s);
    // Queries of cross attention are no tokens of the sequence, so there may be more of them.
    CHECK(0 <= queries && (queries <= length || !limits_.causal) && length <= limits_.max_length,
          "{} queries of {} tokens, at most {}", queries, length, limits_.max_length);
    CHECK(!shape.recorded || queries <= 1, "{} queries of a sequence in a recorded step", queries);
  }
}

void AttentionSchedule::share_prefixes(const AttentionShape& shape) {
  const auto sequences = static_cast<std::int32_t>(shape.lengths.size());
  shared_pieces_.assign(index(sequences), 0);
  merge_.assign(index(sequences), -1);
  shared_queries_.clear();
  if (!shares_ || sequences < 2) return;
  prefixes_.clear();
  for (std::int32_t s = 0; s < sequences; ++s) {
    const std::int32_t length = shape.lengths[index(s)], queries = queries_of(shape, s);
    // The rows of another sequence must fit into the tile. A sequence that is longer than its window no
    // longer sees the prefix.
    if (queries == 0 || (queries + 1) * group_ > kNarrowRows ||
        (limits_.window > 0 && length > limits_.window))
      continue;
    prefixes_.add(s, shape.block_tables.subspan(index(s) * static_cast<std::size_t>(shape.table_stride),
                                                index((length - queries) / limits_.kv.block_size)));
  }
  prefixes_.find();
  for (const SharedPrefix& prefix : prefixes_.all()) share(shape, prefix);
}

// Divides the sequences of a prefix into tiles of sequences that so far share the same number of pieces.
void AttentionSchedule::share(const AttentionShape& shape, const SharedPrefix& prefix) {
  const std::span<const std::int32_t> sequences = prefixes_.sequences(prefix);
  for (std::size_t first = 0, past = 0; first < sequences.size(); first = past) {
    const std::int32_t shared = shared_pieces_[index(sequences[first])];
    for (std::int64_t rows = 0; past < sequences.size(); ++past) {
      rows += queries_of(shape, sequences[past]) * group_;
      if (rows > kNarrowRows || shared_pieces_[index(sequences[past])] != shared) break;
    }
    add_shared_tile(shape, sequences.subspan(first, past - first), prefix.pieces);
  }
}

// Adds a tile for the first `pieces` pieces of some sequences, apart from the pieces that they share already.
// Adds no tile if it costs more bytes than it saves, or if there is no memory for the states.
void AttentionSchedule::add_shared_tile(const AttentionShape& shape, std::span<const std::int32_t> sequences,
                                        std::int32_t pieces) {
  const std::int32_t first_piece = shared_pieces_[index(sequences.front())];
  std::int64_t states = 0;  // for each KV head
  for (const std::int32_t s : sequences)
    if (merge_[index(s)] < 0) states += queries_of(shape, s) * group_ * pieces_of(shape.lengths[index(s)]);
  const std::int64_t saved = (std::ssize(sequences) - 1) * (pieces - first_piece) * kRowsOfAPiece;
  const auto first = static_cast<std::int32_t>(shared_queries_.size());
  if (saved <= states + kBeginning * kRowsOfAPiece || states_used_ + states * limits_.kv.kv_heads > states_ ||
      first == most_shared_tiles(std::ssize(shape.lengths)) * tile_queries())
    return;
  const auto group = static_cast<std::int32_t>(group_);
  for (const std::int32_t s : sequences) {
    const std::int32_t length = shape.lengths[index(s)], queries = queries_of(shape, s);
    std::int32_t& merge = merge_[index(s)];
    if (merge < 0) merge = add_merge({s, 0, queries * group, 0, pieces_of(length)});
    shared_pieces_[index(s)] = pieces;
    for (std::int32_t q = 0; q < queries; ++q)
      shared_queries_.push_back({.sequence = s,
                                 .row = q * group,
                                 .query = shape.query_starts[index(s)] + q,
                                 .position = length - queries + q,
                                 .merge = merge});
  }
  std::ranges::sort(shared_queries_.begin() + first, shared_queries_.end(), {}, &SharedQuery::position);
  const auto past = static_cast<std::int32_t>(shared_queries_.size());
  tiles_.push_back({sequences.front(), first * group, past * group, first_piece, pieces, true});
  shared_queries_.resize(index(first) + static_cast<std::size_t>(tile_queries()));
}

void AttentionSchedule::cut(const AttentionShape& shape) {
  const auto sequences = static_cast<std::int32_t>(shape.lengths.size());
  for (std::int32_t s = 0; s < sequences; ++s) {
    const std::int64_t length = shape.lengths[index(s)], queries = queries_of(shape, s);
    const std::int64_t rows = queries * group_;
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
                        std::max(static_cast<std::int32_t>(unseen / kPieceTokens), shared_pieces_[index(s)]),
                        pieces_of(seen)});
    }
  }
}

// Returns the number of pieces per unit with which the device ends earliest. If no number leads to at most
// `most_units` units, a unit has all pieces of its tile.
std::int32_t AttentionSchedule::pieces_to_a_unit(std::int64_t most_units) const {
  std::int32_t most = 1;
  for (const Tile& tile : tiles_) most = std::max(most, tile.pieces());
  std::int32_t best = most;
  std::int64_t best_time = std::numeric_limits<std::int64_t>::max();
  for (std::int32_t units = 1; units <= most; ++units) {
    const auto pieces = static_cast<std::int32_t>(quotient_up(most, units));
    const Cost cost = cost_of(pieces);
    if (units > 1 && cost.units > most_units) break;
    if (cost.time < best_time) {
      best = pieces;
      best_time = cost.time;
    }
  }
  return best;
}

// Returns the cost of units of at most `pieces` pieces. The unit of time is what a thread block needs for a
// row of a piece's state. The device runs thread blocks of different lengths together, and their sum counts
// in rounds of the longest one.
AttentionSchedule::Cost AttentionSchedule::cost_of(std::int32_t pieces) const {
  bool wide = false;
  std::int64_t units = 0, longest = 1, sum = 0;
  for (const Tile& tile : tiles_) {
    wide = wide || tile.rows() > kNarrowRows;
    const bool in_memory = tile.pieces() > pieces || merge_[index(tile.sequence)] >= 0;
    const std::int64_t of_tile = quotient_up(tile.pieces(), pieces);
    const std::int64_t time =
        std::min(tile.pieces(), pieces) * (kRowsOfAPiece + (in_memory ? tile.rows() : 0)) +
        kBeginning * kRowsOfAPiece;
    units += of_tile;
    longest = std::max(longest, time);
    sum += of_tile * time * limits_.kv.kv_heads;
  }
  const std::int64_t at_a_time =
      std::max<std::int64_t>(blocks_at_a_time_ / (wide && wide_by_wgmma_ ? kBlocksPerProcessor : 1), 1);
  return {.units = units, .time = quotient_up(sum, at_a_time * longest) * longest};
}

// Reserves memory for the states of a tile. Returns the index of its merge, or -1 if there is no memory.
std::int32_t AttentionSchedule::add_merge(const Tile& tile) {
  const std::int64_t rows = tile.rows(), states = rows * tile.pieces() * limits_.kv.kv_heads;
  if (states_used_ + states > states_) return -1;
  merges_.push_back(
      {tile.sequence, tile.row_begin, tile.row_end, tile.piece_begin, tile.piece_end, states_used_});
  states_used_ += states;
  merge_rows_max_ = std::max(merge_rows_max_, rows);
  return static_cast<std::int32_t>(merges_.size()) - 1;
}

void AttentionSchedule::add(const Tile& tile, std::int32_t pieces_to_a_unit) {
  std::int32_t merge = merge_[index(tile.sequence)];
  if (merge < 0 && tile.pieces() > pieces_to_a_unit) merge = add_merge(tile);
  if (merge < 0) pieces_to_a_unit = tile.pieces();
  for (std::int32_t piece = tile.piece_begin; piece < tile.piece_end; piece += pieces_to_a_unit)
    units_.push_back({tile.sequence, tile.row_begin, tile.row_end, piece,
                      std::min(piece + pieces_to_a_unit, tile.piece_end), merge, tile.shared});
}

// Adds empty units, merges and shared queries up to the maximum that decoding of this number of sequences can
// need.
void AttentionSchedule::pad(std::int64_t sequences) {
  const std::int64_t tile_rows = rows_of_tiles(group_);
  const std::int64_t tiles = sequences * quotient_up(group_, tile_rows),
                     shared = most_shared_tiles(sequences);
  const std::int64_t filling = most_blocks_ / limits_.kv.kv_heads;
  const std::int64_t units = std::max(tiles + shared, filling);
  const std::int64_t merges = shares_ ? tiles : std::min(filling / 2, tiles);
  CHECK(std::ssize(units_) <= units && std::ssize(merges_) <= merges, "{} units and {} merges of {} tiles",
        units_.size(), merges_.size(), tiles);
  units_.resize(static_cast<std::size_t>(units));
  merges_.resize(static_cast<std::size_t>(merges));
  shared_queries_.resize(static_cast<std::size_t>(shared * tile_queries()));
  merge_rows_max_ = std::min(group_, tile_rows);
  narrow_units_ = group_ <= kNarrowRows ? std::ssize(units_) : 0;
}

}  // namespace octavo::cuda
