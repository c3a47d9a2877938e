#include "kernels/cuda/attention_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <tuple>

namespace octavo::cuda {
namespace {

struct Step {
  std::vector<std::int32_t> starts{0}, lengths;
  void add(int queries, int length) {
    starts.push_back(starts.back() + queries);
    lengths.push_back(length);
  }
  AttentionShape shape() const {
    return {.query_starts = starts, .lengths = lengths, .block_tables = {}, .table_stride = 0};
  }
};

AttentionLimits limits_of(int q_heads, int kv_heads, int head_dim, int window = 0) {
  return {.max_tokens = 4096,
          .max_sequences = 64,
          .max_length = 1 << 17,
          .q_heads = q_heads,
          .kv = {.kv_heads = kv_heads, .head_dim = head_dim},
          .window = window};
}

// Checks that every visible (sequence, row, piece) belongs to exactly one unit. Either all units of a tile
// belong to its merge, or no unit does.
void expect_complete(const AttentionSchedule& schedule, const Step& step, int group, int window) {
  std::map<std::tuple<int, int, int>, int> covered;
  for (std::size_t u = 0; u < schedule.units().size(); ++u) {
    const AttentionUnit& unit = schedule.units()[u];
    if (unit.row_begin == unit.row_end) continue;  // an empty unit that pads a captured step
    if (static_cast<std::int64_t>(u) < schedule.narrow_units()) {
      EXPECT_LE(unit.row_end - unit.row_begin, kNarrowRows);
    }
    EXPECT_LT(unit.piece_begin, unit.piece_end);
    if (unit.merge >= 0) {
      const AttentionMerge& merge = schedule.merges()[static_cast<std::size_t>(unit.merge)];
      EXPECT_EQ(merge.sequence, unit.sequence);
      EXPECT_EQ(merge.row_begin, unit.row_begin);
      EXPECT_EQ(merge.row_end, unit.row_end);
      EXPECT_GE(unit.piece_begin, merge.piece_begin);
      EXPECT_LE(unit.piece_end, merge.piece_end);
      EXPECT_LE(merge.row_end - merge.row_begin, schedule.merge_rows_max());
    }
    for (int row = unit.row_begin; row < unit.row_end; ++row)
      for (int piece = unit.piece_begin; piece < unit.piece_end; ++piece)
        ++covered[{unit.sequence, row, piece}];
  }
  for (const auto& [key, times] : covered) ASSERT_EQ(times, 1);
  for (std::size_t s = 0; s < step.lengths.size(); ++s) {
    const int queries = step.starts[s + 1] - step.starts[s];
    for (int row = 0; row < queries * group; ++row) {
      const int seen = step.lengths[s] - queries + row / group + 1;
      const int first = window > 0 ? std::max(0, seen - window) / kPieceTokens : 0;
      for (int piece = first; piece * kPieceTokens < seen; ++piece)
        ASSERT_TRUE(covered.contains({static_cast<int>(s), row, piece}));
    }
  }
}

TEST(CudaAttentionSchedule, CoversEveryPieceOnce) {
  std::mt19937 random(1);
  const auto integer = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  for (int round = 0; round < 200; ++round) {
    const int kv_heads = integer(1, 8), group = integer(1, 9), dim = integer(0, 1) == 0 ? 128 : 256;
    const int window = integer(0, 1) == 0 ? 0 : integer(1, 2000);
    AttentionSchedule schedule(limits_of(kv_heads * group, kv_heads, dim, window), integer(0, 500),
                               integer(0, 50000));
    Step step;
    for (int s = integer(1, 8); s > 0; --s) {
      const int length = integer(1, integer(0, 1) == 0 ? 100 : 4000);
      step.add(integer(0, 1) == 0 ? 1 : integer(0, std::min(length, 300)), length);
    }
    schedule.fill(step.shape());
    expect_complete(schedule, step, group, window);
    EXPECT_LE(std::ssize(schedule.units()), schedule.most_units());
    EXPECT_LE(std::ssize(schedule.merges()), schedule.most_tiles());
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
    using Launches = std::tuple<std::size_t, std::int64_t, std::size_t, std::int64_t>;
    std::optional<Launches> first;
    for (int step_of_size = 0; step_of_size < 20; ++step_of_size) {
      AttentionSchedule schedule(limits, at_a_time, integer(0, 50000));
      Step step;
      const int sequences = integer(1, size);
      for (int s = 0; s < sequences; ++s) step.add(1, integer(1, integer(0, 1) == 0 ? 100 : 20000));
      for (int s = sequences; s < size; ++s) step.add(0, 0);
      AttentionShape shape = step.shape();
      shape.recorded = true;
      schedule.fill(shape);
      expect_complete(schedule, step, group, window);
      EXPECT_LE(std::ssize(schedule.units()), schedule.most_units());
      EXPECT_LE(std::ssize(schedule.merges()), schedule.most_tiles());
      const Launches launches{schedule.units().size(), schedule.narrow_units(), schedule.merges().size(),
                              schedule.merge_rows_max()};
      if (!first) first = launches;
      EXPECT_EQ(launches, *first);
    }
  }
}

TEST(CudaAttentionSchedule, SharesALongSequenceOut) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 352, 1 << 20);
  Step step;
  step.add(1, 1 << 17);  // 1,024 pieces
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 43u);  // 344 thread blocks in one round, with 24 pieces each
  EXPECT_EQ(schedule.merges().size(), 1u);
  EXPECT_EQ(schedule.states_used(), std::int64_t{4} * 1024 * 8);
}

// A window of 1,024 tokens overlaps nine of 1,024 pieces, and each of these pieces becomes a unit.
TEST(CudaAttentionSchedule, SharesOutWhatAWindowSees) {
  AttentionSchedule schedule(limits_of(32, 8, 128, 1024), 352, 1 << 20);
  Step step;
  step.add(1, (1 << 17) - 50);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 9u);
  EXPECT_EQ(schedule.states_used(), std::int64_t{4} * 9 * 8);
}

// 512 thread blocks of 32 pieces need two rounds of 396; 1,024 thread blocks of 16 pieces need three shorter
// rounds.
TEST(CudaAttentionSchedule, SharesOutWhereTheLastTurnWouldBeShort) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20);
  Step step;
  for (int s = 0; s < 64; ++s) step.add(1, 4096);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 128u);
}

TEST(CudaAttentionSchedule, LeavesFullBatchesWhole) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 132, 1 << 20);
  Step step;
  for (int s = 0; s < 64; ++s) step.add(1, 4096);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 64u);
  EXPECT_TRUE(schedule.merges().empty());
}

// The states of a piece for 128 rows are twice as large as its keys and values. A wgmma thread block uses a
// full multiprocessor, so more blocks need more rounds.
TEST(CudaAttentionSchedule, LeavesPromptsWhole) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20, true);
  Step step;
  step.add(2048, 2048);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 64u);
  EXPECT_TRUE(schedule.merges().empty());
}

TEST(CudaAttentionSchedule, LeavesShortPromptsWhole) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20, true);
  Step step;
  step.add(512, 512);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 16u);
  EXPECT_TRUE(schedule.merges().empty());
}

// The last tokens of a long prompt form one tile, whose pieces are still divided.
TEST(CudaAttentionSchedule, SharesTheEndOfALongPromptOut) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 396, 1 << 20, true);
  Step step;
  step.add(20, 16384);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 16u);  // 16 units for each of 8 KV heads fit into one round of 132
                                            // thread blocks
}

TEST(CudaAttentionSchedule, DoesNotSplitWithoutRoomForStates) {
  AttentionSchedule schedule(limits_of(32, 8, 128), 352, 100);
  Step step;
  step.add(1, 1 << 16);
  schedule.fill(step.shape());
  EXPECT_EQ(schedule.units().size(), 1u);
  EXPECT_TRUE(schedule.merges().empty());
}

}  // namespace
}  // namespace octavo::cuda
