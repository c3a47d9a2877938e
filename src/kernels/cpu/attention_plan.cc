#include "kernels/cpu/attention_plan.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/cpu.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kUnitsPerThread = 6;  // units of work, so that threads finish together

std::int64_t pieces_of(std::int64_t tokens) { return (tokens + kPieceTokens - 1) / kPieceTokens; }

}  // namespace

CpuAttentionPlan::CpuAttentionPlan(const AttentionLimits& limits, int threads, int tile_rows)
    : limits_(limits),
      threads_(threads),
      tile_rows_(tile_rows),
      group_(limits.q_heads / limits.kv.kv_heads),
      state_floats_(KvLayout(limits.kv).padded_dim + 2),
      // Enough to share out four queries over the longest sequence; what does not fit is not shared out.
      state_count_(4 * limits.q_heads * pieces_of(limits.max_length)) {
  const auto sequences = static_cast<std::size_t>(limits.max_sequences);
  const auto blocks =
      static_cast<std::size_t>((limits.max_length + limits.kv.block_size - 1) / limits.kv.block_size);
  const auto row_blocks =
      sequences + static_cast<std::size_t>(limits.max_tokens * group_ / kAttentionRows) + 1;
  starts_.reserve(sequences + 1);
  lengths_.reserve(sequences);
  tables_.reserve(sequences * blocks);
  table_begins_.reserve(sequences);
  merges_.reserve(row_blocks);
  units_.reserve(row_blocks + static_cast<std::size_t>(state_count_ / limits.q_heads) * 4);
}

Result<std::unique_ptr<CpuAttentionPlan>> CpuAttentionPlan::make(const AttentionLimits& limits, int threads,
                                                                 int tile_rows) {
  std::unique_ptr<CpuAttentionPlan> plan(new CpuAttentionPlan(limits, threads, tile_rows));
  TRY(plan->states_,
      allocate_host(static_cast<std::size_t>(plan->state_count_ * plan->state_floats_) * sizeof(float)));
  return plan;
}

// visit(sequence, row_begin, row_end) for blocks of rows, the last rows of a sequence, which see most, first.
template <class Visit>
void CpuAttentionPlan::for_row_blocks(Visit&& visit) const {
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(lengths_.size()); ++s) {
    const std::int64_t rows = (starts_[index(s) + 1] - starts_[index(s)]) * group_;
    for (std::int64_t begin = (rows - 1) / kAttentionRows * kAttentionRows; rows > 0 && begin >= 0;
         begin -= kAttentionRows)
      visit(s, static_cast<std::int32_t>(begin),
            static_cast<std::int32_t>(std::min(begin + kAttentionRows, rows)));
  }
}

void CpuAttentionPlan::fill(const AttentionShape& shape) {
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
    CHECK(starts_[s + 1] - starts_[s] <= lengths_[s] && starts_[s] <= starts_[s + 1]);
    table_begins_.push_back(std::ssize(tables_));
    const auto* row = shape.block_tables.data() + static_cast<std::int64_t>(s) * shape.table_stride;
    const std::int64_t blocks = (lengths_[s] + limits_.kv.block_size - 1) / limits_.kv.block_size;
    CHECK(blocks <= shape.table_stride, "{} blocks in a table of {}", blocks, shape.table_stride);
    tables_.insert(tables_.end(), row, row + blocks);
  }

  units_.clear();
  merges_.clear();
  states_used_ = 0;
  std::int64_t cost = 0;
  for_row_blocks([&](std::int32_t s, std::int32_t begin, std::int32_t end) {
    cost += pieces_of(position(s, end - 1) + 1) * tiles_of(end - begin);
  });
  const std::int64_t cost_wanted = threads_ == 1 ? std::numeric_limits<std::int64_t>::max()
                                                 : cost * limits_.kv.kv_heads / (threads_ * kUnitsPerThread);
  for_row_blocks(
      [&](std::int32_t s, std::int32_t begin, std::int32_t end) { share_out(s, begin, end, cost_wanted); });
}

// One block of rows becomes one unit, or, where it is a large part of all the work, several.
void CpuAttentionPlan::share_out(std::int32_t sequence, std::int32_t row_begin, std::int32_t row_end,
                                 std::int64_t cost_wanted) {
  const auto pieces = static_cast<std::int32_t>(pieces_of(position(sequence, row_end - 1) + 1));
  const std::int64_t tiles = tiles_of(row_end - row_begin);
  const std::int64_t states = std::int64_t{row_end - row_begin} * pieces * limits_.kv.kv_heads;
  if (pieces == 1 || pieces * tiles <= cost_wanted || states_used_ + states > state_count_) {
    units_.push_back({sequence, row_begin, row_end, 0, pieces, -1});
    return;
  }
  const auto per_unit = static_cast<std::int32_t>(std::max<std::int64_t>(1, cost_wanted / tiles));
  const auto merge = static_cast<std::int32_t>(merges_.size());
  merges_.push_back({sequence, row_begin, row_end, pieces, states_used_});
  states_used_ += states;
  for (std::int32_t piece = 0; piece < pieces; piece += per_unit)
    units_.push_back({sequence, row_begin, row_end, piece, std::min(piece + per_unit, pieces), merge});
}

std::unique_ptr<AttentionPlan> make_attention_plan(Device& device, const AttentionLimits& limits) {
  CpuStream& stream = static_cast<CpuDevice&>(device).stream();
  auto plan = CpuAttentionPlan::make(limits, stream.pool().size(), stream.kernels().tile_rows);
  CHECK(plan.has_value(), "{}", plan.error().message);
  return *std::move(plan);
}

void plan_attention(Stream&, const AttentionShape& shape, AttentionPlan& plan) {
  static_cast<CpuAttentionPlan&>(plan).fill(shape);
}

}  // namespace octavo::cpu
