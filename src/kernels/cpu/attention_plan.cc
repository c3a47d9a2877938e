#include "kernels/cpu/attention_plan.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/attention_unit.h"
#include "kernels/cpu/cpu.h"

namespace octavo::cpu {
namespace {

// Several units per thread make threads end at about the same time.
constexpr std::int64_t kUnitsPerThread = 6;
// maximum bytes of memory for the states of shared prefixes
constexpr std::int64_t kMostSharedStateBytes = std::int64_t{32} << 20;

std::int64_t pieces_of(std::int64_t tokens) { return (tokens + kPieceTokens - 1) / kPieceTokens; }

// Returns the maximum number of pieces that one query sees. A window may begin and end inside a piece.
std::int64_t most_pieces(const AttentionLimits& limits) {
  const std::int64_t all = pieces_of(limits.max_length);
  return limits.window > 0 ? std::min(all, pieces_of(limits.window - 1) + 1) : all;
}

}  // namespace

CpuAttentionPlan::CpuAttentionPlan(const AttentionLimits& limits, int threads, int tile_rows)
    : limits_(limits),
      threads_(threads),
      tile_rows_(tile_rows),
      group_(limits.q_heads / limits.kv.kv_heads),
      state_floats_(KvLayout(limits.kv).padded_dim + 2),
      prefixes_(limits.kv.block_size, kPieceTokens, static_cast<std::size_t>(limits.max_sequences)) {
  // Number of states: enough to split four queries over the longest sequence, and one query of each
  // sequence up to a limit. Other rows are not split.
  const std::int64_t of_a_query = limits.q_heads * most_pieces(limits);
  state_count_ = 4 * of_a_query +
                 std::min(limits.max_sequences * of_a_query,
                          kMostSharedStateBytes / (state_floats_ * static_cast<std::int64_t>(sizeof(float))));
  const auto sequences = static_cast<std::size_t>(limits.max_sequences);
  const auto blocks =
      static_cast<std::size_t>((limits.max_length + limits.kv.block_size - 1) / limits.kv.block_size);
  const auto row_blocks =
      sequences + static_cast<std::size_t>(limits.max_tokens * group_ / kAttentionRows) + 1;
  starts_.reserve(sequences + 1);
  lengths_.reserve(sequences);
  tables_.reserve(sequences * blocks);
  table_begins_.reserve(sequences);
  shared_.reserve(sequences);
  merge_.reserve(sequences);
  merges_.reserve(row_blocks);
  // Capacity for nested prefixes: enough for four levels if all sequences share prefixes.
  parts_.reserve(row_blocks + 4 * sequences);
  jobs_.reserve(parts_.capacity());
  // Capacity for units: each has at least a quarter of the wanted cost, except the last unit of a job.
  units_.reserve(2 * jobs_.capacity() * static_cast<std::size_t>(limits.kv.kv_heads) +
                 static_cast<std::size_t>(4 * threads * kUnitsPerThread));
}

Result<std::unique_ptr<CpuAttentionPlan>> CpuAttentionPlan::make(const AttentionLimits& limits, int threads,
                                                                 int tile_rows) {
  std::unique_ptr<CpuAttentionPlan> plan;
  try {
    plan.reset(new CpuAttentionPlan(limits, threads, tile_rows));
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::resource_exhausted,
                   "no memory to plan the attention of {} sequences of {} tokens", limits.max_sequences,
                   limits.max_length);
  }
  TRY(plan->states_,
      allocate_host(static_cast<std::size_t>(plan->state_count_ * plan->state_floats_) * sizeof(float)));
  return plan;
}

void CpuAttentionPlan::fill(const AttentionShape& shape) {
  copy(shape);
  parts_.clear();
  jobs_.clear();
  units_.clear();
  merges_.clear();
  states_used_ = 0;
  share_prefixes();
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(lengths_.size()); ++s) add_own_jobs(s);
  std::int64_t total = 0;
  for (const AttentionJob& job : jobs_) total += cost(job);
  const std::int64_t wanted = threads_ == 1 ? std::numeric_limits<std::int64_t>::max()
                                            : std::max<std::int64_t>(1, total / (threads_ * kUnitsPerThread));
  for (const AttentionJob& job : jobs_) cut(job, wanted);
}

void CpuAttentionPlan::copy(const AttentionShape& shape) {
  const std::size_t sequences = shape.lengths.size();
  CHECK(shape.query_starts.size() == sequences + 1);
  CHECK(sequences <= static_cast<std::size_t>(limits_.max_sequences), "{} sequences, room for {}", sequences,
        limits_.max_sequences);
  CHECK(shape.query_starts.back() <= limits_.max_tokens, "{} tokens, room for {}", shape.query_starts.back(),
        limits_.max_tokens);
  starts_.assign(shape.query_starts.begin(), shape.query_starts.end());
  lengths_.assign(shape.lengths.begin(), shape.lengths.end());
  tables_.clear();
  table_begins_.clear();
  for (std::size_t s = 0; s < sequences; ++s) {
    CHECK(lengths_[s] <= limits_.max_length, "length {} of at most {}", lengths_[s], limits_.max_length);
    CHECK((!causal() || starts_[s + 1] - starts_[s] <= lengths_[s]) && starts_[s] <= starts_[s + 1]);
    table_begins_.push_back(std::ssize(tables_));
    const auto* row = shape.block_tables.data() + static_cast<std::int64_t>(s) * shape.table_stride;
    const std::int64_t blocks = (lengths_[s] + limits_.kv.block_size - 1) / limits_.kv.block_size;
    CHECK(blocks <= shape.table_stride, "{} blocks in a table of {}", blocks, shape.table_stride);
    tables_.insert(tables_.end(), row, row + blocks);
  }
}

std::int32_t CpuAttentionPlan::first_piece(std::int32_t sequence, std::int64_t row) const {
  if (limits_.window == 0) return 0;
  const std::int64_t first = position(sequence, row) - limits_.window + 1;
  return static_cast<std::int32_t>(std::max<std::int64_t>(0, first) / kPieceTokens);
}
std::int32_t CpuAttentionPlan::past_piece(std::int32_t sequence, std::int64_t row) const {
  return static_cast<std::int32_t>(pieces_of(seen_end(sequence, row, limits_.window)));
}

std::int32_t CpuAttentionPlan::add_merge(std::int32_t sequence, std::int64_t row_begin,
                                         std::int64_t row_end) {
  const std::int32_t piece_begin = first_piece(sequence, row_begin);
  const std::int32_t piece_end = past_piece(sequence, row_end - 1);
  const std::int64_t states = (row_end - row_begin) * (piece_end - piece_begin) * limits_.kv.kv_heads;
  if (states_used_ + states > state_count_) return -1;
  merges_.push_back({sequence, static_cast<std::int32_t>(row_begin), static_cast<std::int32_t>(row_end),
                     piece_begin, piece_end, states_used_});
  states_used_ += states;
  return static_cast<std::int32_t>(merges_.size()) - 1;
}

std::span<const std::int32_t> CpuAttentionPlan::shareable_blocks(std::int32_t sequence) const {
  const std::int64_t rows = queries(sequence) * group_;
  if (rows == 0 || rows > tile_rows_) return {};
  // If the sequence is longer than its window, it no longer sees the prefix, so it shares none.
  if (limits_.window > 0 && length(sequence) > limits_.window) return {};
  const std::int64_t blocks = (length(sequence) - queries(sequence)) / limits_.kv.block_size;
  return {table(sequence), static_cast<std::size_t>(std::max<std::int64_t>(0, blocks))};
}

void CpuAttentionPlan::share_prefixes() {
  const auto sequences = static_cast<std::int32_t>(lengths_.size());
  shared_.assign(index(sequences), 0);
  merge_.assign(index(sequences), -1);
  prefixes_.clear();
  for (std::int32_t s = 0; s < sequences; ++s) prefixes_.add(s, shareable_blocks(s));
  prefixes_.find();
  for (const SharedPrefix& prefix : prefixes_.all()) share(prefix);
}

// Adds merges for sequences. Returns false if the memory for states does not suffice.
bool CpuAttentionPlan::add_merges(std::span<const std::int32_t> sequences) {
  const std::size_t merges = merges_.size();
  const std::int64_t used = states_used_;
  for (const std::int32_t s : sequences) {
    merge_[index(s)] = add_merge(s, 0, queries(s) * group_);
    if (merge_[index(s)] >= 0) continue;
    for (const std::int32_t other : sequences) merge_[index(other)] = -1;
    merges_.resize(merges);
    states_used_ = used;
    return false;
  }
  return true;
}

// Plans the pieces of a common prefix that the sequences do not share yet.
void CpuAttentionPlan::share(const SharedPrefix& prefix) {
  const std::span<const std::int32_t> sequences = prefixes_.sequences(prefix);
  const auto own_jobs =
      static_cast<std::size_t>(limits_.max_tokens * group_ / kAttentionRows) + lengths_.size() + 1;
  if (parts_.size() + sequences.size() + own_jobs > parts_.capacity()) return;
  const std::int32_t pieces_done = shared_[index(sequences.front())];
  if (pieces_done == 0 && !add_merges(sequences)) return;
  for (const std::int32_t s : sequences) {
    const auto rows = static_cast<std::int32_t>(queries(s) * group_);
    if (s == sequences.front() || jobs_.back().rows + rows > kAttentionRows) {
      const auto part = static_cast<std::int32_t>(parts_.size());
      jobs_.push_back({part, part, 0, pieces_done, prefix.pieces});
    }
    parts_.push_back({s, 0, rows, merge_[index(s)]});
    ++jobs_.back().part_end;
    jobs_.back().rows += rows;
    shared_[index(s)] = prefix.pieces;
  }
}

// Splits the rows of a sequence into blocks. The last rows are planned first, because they see the most
// tokens.
void CpuAttentionPlan::add_own_jobs(std::int32_t s) {
  const std::int64_t rows = queries(s) * group_;
  for (std::int64_t begin = (rows - 1) / kAttentionRows * kAttentionRows; rows > 0 && begin >= 0;
       begin -= kAttentionRows) {
    const std::int64_t end = std::min(begin + kAttentionRows, rows);
    const auto part = static_cast<std::int32_t>(parts_.size());
    parts_.push_back({s, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), merge_[index(s)]});
    jobs_.push_back({part, part + 1, parts_.back().rows(), std::max(shared_[index(s)], first_piece(s, begin)),
                     past_piece(s, end - 1)});
  }
}

// Returns the cost of a job. The unit is a tile of one head and one piece.
std::int64_t CpuAttentionPlan::cost(const AttentionJob& job) const {
  return std::int64_t{job.piece_end - job.piece_begin} * tiles_of(job.rows) * limits_.kv.kv_heads;
}

// Splits a job into units. A small job is one unit. A large job is split by heads, then by pieces. If heads
// have few rows, several heads stay in one unit, so that memory is read in order.
void CpuAttentionPlan::cut(const AttentionJob& job, std::int64_t cost_wanted) {
  const std::int32_t kv_heads = limits_.kv.kv_heads;
  const std::int64_t tiles = tiles_of(job.rows);
  const std::int64_t most_heads =
      std::clamp<std::int64_t>(std::min(kAttentionRows / job.rows, cost_wanted / tiles), 1, kv_heads);
  const auto head_cuts = static_cast<std::int32_t>((kv_heads + most_heads - 1) / most_heads);
  const std::int32_t heads = (kv_heads + head_cuts - 1) / head_cuts;
  const std::int32_t pieces = job.piece_end - job.piece_begin;
  auto per_unit =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(cost_wanted / (tiles * heads), 1, pieces));
  AttentionPart& first = parts_[index(job.part_begin)];
  if (per_unit < pieces && first.merge < 0) {
    first.merge = add_merge(first.sequence, first.row_begin, first.row_end);
    // If there is no memory for states, one unit processes all pieces.
    if (first.merge < 0) per_unit = pieces;
  }
  for (std::int32_t head = 0; head < kv_heads; head += heads)
    for (std::int32_t piece = job.piece_begin; piece < job.piece_end; piece += per_unit)
      units_.push_back({job.part_begin, job.part_end, head, std::min(head + heads, kv_heads), piece,
                        std::min(piece + per_unit, job.piece_end)});
}

Result<std::unique_ptr<AttentionPlan>> make_attention_plan(Device& device, const AttentionLimits& limits) {
  CpuStream& stream = static_cast<CpuDevice&>(device).stream();
  TRY(auto plan, CpuAttentionPlan::make(limits, stream.pool().size(), stream.kernels().tile_rows));
  if (limits.kv.shared_rows()) {
    TRY_VOID(stream.reserve_scratch(row_attention_bytes(limits, stream.kernels())));
    return plan;
  }
  TRY_VOID(stream.reserve_scratch(AttentionScratch(limits.kv, nullptr).bytes));
  if (limits.kv.index_dim > 0) TRY_VOID(stream.reserve_scratch(choice_bytes(limits.kv, limits.max_length)));
  return plan;
}

void plan_attention(Stream&, const AttentionShape& shape, AttentionPlan& plan) {
  static_cast<CpuAttentionPlan&>(plan).fill(shape);
}

}  // namespace octavo::cpu
