#include "kernels/cuda/attention_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <tuple>
#include <utility>

namespace octavo::cuda {
namespace {

constexpr int kBlockSize = 16;

struct Step {
  std::vector<std::int32_t> starts{0}, lengths, tables;
  std::int64_t stride = 0;

  explicit Step(int longest) : stride((longest + kBlockSize - 1) / kBlockSize) {}
  // Adds a sequence that begins with the first `common` tokens of sequence `with`.
  void add(int queries, int length, int with = 0, int common = 0) {
    const std::size_t begin = tables.size();
    starts.push_back(starts.back() + queries);
    lengths.push_back(length);
    for (std::int64_t b = 0; b < stride; ++b) tables.push_back(static_cast<std::int32_t>(std::ssize(tables)));
    std::copy_n(tables.begin() + with * stride, common / kBlockSize,
                tables.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  AttentionShape shape() const {
    return {.query_starts = starts, .lengths = lengths, .block_tables = tables, .table_stride = stride};
  }
  int queries(std::size_t s) const { return starts[s + 1] - starts[s]; }
};

AttentionLimits limits_of(int q_heads, int kv_heads, int head_dim, int window = 0) {
  return {.max_tokens = 4096,
          .max_sequences = 64,
          .max_length = 1 << 17,
          .q_heads = q_heads,
          .kv = {.kv_heads = kv_heads, .head_dim = head_dim, .block_size = kBlockSize},
          .window = window};
}

using Row = std::tuple<int, int, int>;  // sequence, index of the row in it, and the unit's merge

// Returns the rows of a unit. Checks those of several sequences.
std::vector<Row> rows_of(const AttentionSchedule& schedule, const AttentionUnit& unit, const Step& step,
                         int group) {
  std::vector<Row> rows;
  int position = 0;
  for (int row = unit.row_begin; row < unit.row_end; ++row) {
    if (!unit.shared) {
      rows.emplace_back(unit.sequence, row, unit.merge);
      continue;
    }
    const SharedQuery& query = schedule.shared_queries()[static_cast<std::size_t>(row / group)];
    const auto s = static_cast<std::size_t>(query.sequence);
    const int own_query = query.row / group;
    EXPECT_EQ(query.query, step.starts[s] + own_query);
    EXPECT_EQ(query.position, step.lengths[s] - step.queries(s) + own_query);
    EXPECT_LE(std::exchange(position, query.position), query.position);
    EXPECT_GE(query.merge, 0);
    EXPECT_LE(unit.piece_end * kPieceTokens, query.position);
    const auto blocks = static_cast<std::size_t>(unit.piece_end * kPieceTokens / kBlockSize);
    const auto table = [&](std::int32_t of) {
      return std::span(step.tables).subspan(static_cast<std::size_t>(of * step.stride), blocks);
    };
    EXPECT_TRUE(std::ranges::equal(table(query.sequence), table(unit.sequence)));
    rows.emplace_back(query.sequence, query.row + row % group, query.merge);
  }
  return rows;
}

// Checks that every visible (sequence, row, piece) belongs to exactly one unit, and that either the merge of
// the row or the only unit of the row has all pieces. Returns the number of pieces that units read.
std::int64_t expect_complete(const AttentionSchedule& schedule, const Step& step, int group, int window) {
  std::map<std::tuple<int, int, int>, int> covered;
  std::int64_t pieces_read = 0;
  for (std::size_t u = 0; u < schedule.units().size(); ++u) {
    const AttentionUnit& unit = schedule.units()[u];
    if (unit.row_begin == unit.row_end) continue;  // an empty unit that pads a captured step
    if (static_cast<std::int64_t>(u) < schedule.narrow_units()) {
      EXPECT_LE(unit.row_end - unit.row_begin, kNarrowRows);
    }
    EXPECT_LT(unit.piece_begin, unit.piece_end);
    pieces_read += unit.piece_end - unit.piece_begin;
    for (const auto& [sequence, row, merge_index] : rows_of(schedule, unit, step, group)) {
      for (int piece = unit.piece_begin; piece < unit.piece_end; ++piece) ++covered[{sequence, row, piece}];
      if (merge_index < 0) continue;
      const AttentionMerge& merge = schedule.merges()[static_cast<std::size_t>(merge_index)];
      EXPECT_EQ(merge.sequence, sequence);
      EXPECT_LE(merge.row_begin, row);
      EXPECT_GT(merge.row_end, row);
      EXPECT_GE(unit.piece_begin, merge.piece_begin);
      EXPECT_LE(unit.piece_end, merge.piece_end);
      EXPECT_LE(merge.row_end - merge.row_begin, schedule.merge_rows_max());
    }
  }
  for (const auto& [key, times] : covered) EXPECT_EQ(times, 1);
  for (std::size_t s = 0; s < step.lengths.size(); ++s)
    for (int row = 0; row < step.queries(s) * group; ++row) {
      const int seen = step.lengths[s] - step.queries(s) + row / group + 1;
      const int first = window > 0 ? std::max(0, seen - window) / kPieceTokens : 0;
      for (int piece = first; piece * kPieceTokens < seen; ++piece)
        EXPECT_TRUE(covered.contains({static_cast<int>(s), row, piece}));
    }
  return pieces_read;
}

TEST(CudaAttentionSchedule, CoversEveryPieceOnce) {
  std::mt19937 random(1);
  const auto integer = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (int round = 0; round < 200; ++round) {
    const int kv_heads = integer(1, 8), group = integer(1, 9), dim = integer(0, 1) == 0 ? 128 : 256;
    const int window = integer(0, 1) == 0 ? 0 : integer(1, 2000);
    AttentionSchedule schedule(limits_of(kv_heads * group, kv_heads, dim, window), integer(0, 500),
                               integer(0, 50000));
    Step step(4000);
    const int sequences = integer(1, 12);
    for (int s = 0; s < sequences; ++s) {
      const int length = integer(1, integer(0, 1) == 0 ? 100 : 4000);
      const int queries = integer(0, 1) == 0 ? 1 : integer(0, std::min(length, integer(0, 1) == 0 ? 4 : 300));
      step.add(queries, length, integer(0, s), integer(0, 1) == 0 ? integer(0, 4000) : 0);
    }
    schedule.fill(step.shape());
    expect_complete(schedule, step, group, window);
    EXPECT_LE(std::ssize(schedule.units()), schedule.most_units());
    EXPECT_LE(std::ssize(schedule.merges()), schedule.most_tiles());
    EXPECT_LE(std::ssize(schedule.shared_queries()), schedule.most_shared_queries());
  }
}

// The number of launches must depend only on the number of sequences.
TEST(CudaAttentionSchedule, RecordedStepsOfOneSizeLaunchTheSame) {
  std::mt19937 random(2);
  const auto integer = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (int round = 0; round < 40; ++round) {
    const int kv_heads = integer(1, 8), group = integer(1, 40), dim = integer(0, 1) == 0 ? 128 : 256;
    const int size = integer(1, 64), at_a_time = integer(0, 500);
    const int window = integer(0, 1) == 0 ? 0 : integer(1, 2000);
    const AttentionLimits limits = limits_of(kv_heads * group, kv_heads, dim, window);
    using Launches = std::tuple<std::size_t, std::int64_t, std::size_t, std::int64_t, std::size_t>;
    std::optional<Launches> first;
    for (int step_of_size = 0; step_of_size < 20; ++step_of_size) {
      AttentionSchedule schedule(limits, at_a_time, integer(0, 50000));
      Step step(20000);
      const int sequences = integer(1, size), common = integer(0, 20000);
      for (int s = 0; s < sequences; ++s)
        step.add(1, integer(1, integer(0, 1) == 0 ? 100 : 20000), integer(0, s), integer(0, common));
      for (int s = sequences; s < size; ++s) step.add(0, 0);
      AttentionShape shape = step.shape();
      shape.recorded = true;
      schedule.fill(shape);
      expect_complete(schedule, step, group, window);
      EXPECT_LE(std::ssize(schedule.units()), schedule.most_units());
      EXPECT_LE(std::ssize(schedule.merges()), schedule.most_tiles());
      EXPECT_LE(std::ssize(schedule.shared_queries()), schedule.most_shared_queries());
      const Launches launches{schedule.units().size(), schedule.narrow_units(), schedule.merges().size(),
                              schedule.merge_rows_max(), schedule.shared_queries().size()};
      if (!first) first = launches;
      EXPECT_EQ(launches, *first);
    }
  }
}

TEST(CudaAttentionSchedule, SharesALongSequenceOut) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 352, 1 << 20);
  Step step(1 << 17);
  step.add(1, 1 << 17);  // 1,024 pieces
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 43u);  // 344 thread blocks in one round, with 24 pieces each
  EXPECT_EQ(schedule.merges().size(), 1u);
  EXPECT_EQ(schedule.states_used(), std::int64_t{4} * 1024 * 8);
}

// A window of 1,024 tokens overlaps nine of 1,024 pieces, and each of these pieces becomes a unit.
TEST(CudaAttentionSchedule, SharesOutWhatAWindowSees) {
  AttentionSchedule schedule(limits_of(32, 8, 128, 1024), 352, 1 << 20);
  Step step((1 << 17) - 50);
  step.add(1, (1 << 17) - 50);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 9u);
  EXPECT_EQ(schedule.states_used(), std::int64_t{4} * 9 * 8);
}

// 512 thread blocks of 32 pieces need two rounds of 396; 1,024 thread blocks of 16 pieces need three shorter
// rounds.
TEST(CudaAttentionSchedule, SharesOutWhereTheLastTurnWouldBeShort) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20);
  Step step(4096);
  for (int s = 0; s < 64; ++s) step.add(1, 4096);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 128u);
}

TEST(CudaAttentionSchedule, LeavesFullBatchesWhole) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 132, 1 << 20);
  Step step(4096);
  for (int s = 0; s < 64; ++s) step.add(1, 4096);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 64u);
  EXPECT_TRUE(schedule.merges().empty());
}

// The states of a piece for 128 rows are twice as large as its keys and values. A wgmma thread block uses a
// full multiprocessor, so more blocks need more rounds.
TEST(CudaAttentionSchedule, LeavesPromptsWhole) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20, true);
  Step step(2048);
  step.add(2048, 2048);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 64u);
  EXPECT_TRUE(schedule.merges().empty());
}

TEST(CudaAttentionSchedule, LeavesShortPromptsWhole) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20, true);
  Step step(512);
  step.add(512, 512);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 16u);
  EXPECT_TRUE(schedule.merges().empty());
}

// The last tokens of a long prompt form one tile, whose pieces are still divided.
TEST(CudaAttentionSchedule, SharesTheEndOfALongPromptOut) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20, true);
  Step step(16384);
  step.add(20, 16384);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 16u);  // 16 units for each of 8 KV heads fit into one round of 132
                                            // thread blocks
}

TEST(CudaAttentionSchedule, DoesNotSplitWithoutRoomForStates) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 352, 100);
  Step step(1 << 16);
  step.add(1, 1 << 16);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 1u);
  EXPECT_TRUE(schedule.merges().empty());
}

// Pieces that units of decode steps read, with 4 query heads for each of 8 KV heads: four sequences fill a
// tile.
std::int64_t pieces_read(const Step& step, const AttentionLimits& limits, std::int64_t states = 1 << 20) {
  AttentionSchedule schedule(limits, 396, states);
  schedule.fill(step.shape());
  return expect_complete(schedule, step, limits.q_heads / limits.kv.kv_heads, limits.window);
}

TEST(CudaAttentionSchedule, ReadsASharedPrefixOnceForATile) {
  Step step(4096);
  for (int s = 0; s < 64; ++s) step.add(1, 4000 + s, 0, 3968);
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128)), 16 * 31 + 64);
  EXPECT_EQ(pieces_read(step, limits_of(64, 8, 128)), 32 * 31 + 64);
}

TEST(CudaAttentionSchedule, ReadsNestedPrefixesOnceForATile) {
  Step step(8192);
  for (int s = 0; s < 8; ++s) step.add(1, 8000, s / 4 * 4, s % 4 == 0 ? 0 : 4096);
  Step nested(8192);
  for (int s = 0; s < 8; ++s) nested.add(1, 8000, s % 4 == 0 ? 0 : s / 4 * 4, s % 4 == 0 ? 1024 : 4096);
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128)), 2 * 32 + 8 * 31);
  EXPECT_EQ(pieces_read(nested, limits_of(32, 8, 128)), 2 * 32 + 8 * 31);
  // Eight sequences fill a tile, which has the shorter prefix of all.
  EXPECT_EQ(pieces_read(nested, limits_of(16, 8, 128)), 8 + 2 * 24 + 8 * 31);
}

// Draft tokens are further rows of a sequence: 4, 8, 12 and 4 rows.
TEST(CudaAttentionSchedule, SharesPrefixesOfQueriesOfDraftTokens) {
  Step step(4096);
  for (int s = 0; s < 4; ++s) step.add(1 + s % 3, 4090, 0, 3968);
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128)), 2 * 31 + 4);
}

TEST(CudaAttentionSchedule, SharesNoPrefixThatSavesLessThanItCosts) {
  Step step(1 << 16);
  for (int s = 0; s < 4; ++s) step.add(1, 1 << 16, 0, 128);  // 511 further pieces each
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128)), 4 * 512);
}

TEST(CudaAttentionSchedule, SharesPrefixesOnlyWhereASequenceStillSeesThem) {
  Step step(4096);
  for (int s = 0; s < 4; ++s) step.add(1, 2048, 0, 1920);
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128, 4096)), 15 + 4);
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128, 1024)), 4 * 8);
}

// Only the sequences whose states fit into memory share the prefix.
TEST(CudaAttentionSchedule, SharesAPrefixAsFarAsThereIsRoomForStates) {
  Step step(4096);
  for (int s = 0; s < 8; ++s) step.add(1, 4000, 0, 3968);
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128), 4 * 4 * 8 * 32), 31 + 4 + 4 * 32);
  EXPECT_EQ(pieces_read(step, limits_of(32, 8, 128), 4 * 4 * 8 * 32 - 1), 8 * 32);
}

TEST(CudaAttentionSchedule, SharesNoPrefixWhereItGainsNothing) {
  Step step(4096);
  for (int s = 0; s < 4; ++s) step.add(1, 4000, 0, 3968);
  AttentionLimits single = limits_of(32, 8, 128);
  single.kv.dtype = DType::f32;
  AttentionLimits latent = limits_of(8, 1, 576);
  latent.kv.values_in_keys = 512;
  for (const AttentionLimits& limits : {limits_of(128, 8, 128), limits_of(8, 8, 512), single, latent})
    EXPECT_EQ(pieces_read(step, limits), 4 * 32);
}

}  // namespace
}  // namespace octavo::cuda
