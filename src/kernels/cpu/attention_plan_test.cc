// Tests the plan of the CPU backend's attention: units cover all work exactly once, and shared prefixes are
// processed together.
#include "kernels/cpu/attention_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "kernels/testing/tensors.h"

namespace octavo::cpu {
namespace {

struct Step {
  std::vector<std::int32_t> starts{0}, lengths, tables;
  std::int64_t stride = 0;
};

constexpr KvSpec kSpec{.kv_heads = 4, .head_dim = 64, .block_size = 16, .dtype = DType::bf16};
constexpr int kQueryHeads = 8;
constexpr int kLongest = 4096;

std::unique_ptr<CpuAttentionPlan> plan_for(int sequences, int tokens, int threads, int window = 0,
                                           int longest = kLongest) {
  return CpuAttentionPlan::make({.max_tokens = tokens,
                                 .max_sequences = sequences,
                                 .max_length = longest,
                                 .q_heads = kQueryHeads,
                                 .kv = kSpec,
                                 .window = window},
                                threads, 12)
      .value();
}

std::int64_t first_piece(const CpuAttentionPlan& plan, std::int32_t sequence, std::int64_t row) {
  if (plan.window() == 0) return 0;
  return std::max<std::int64_t>(0, plan.position(sequence, row) - plan.window() + 1) / kPieceTokens;
}

// Checks that each row processes each visible piece once per head, and that the memory for its states
// suffices.
void expect_all_once(const CpuAttentionPlan& plan, const Step& step) {
  std::map<std::array<std::int64_t, 4>, int> met;
  for (const AttentionUnit& unit : plan.units()) {
    std::int64_t rows = 0;
    for (const AttentionPart& part : plan.parts(unit)) {
      rows += part.rows();
      const bool all = unit.piece_begin <= first_piece(plan, part.sequence, part.row_begin) &&
                       unit.piece_end * kPieceTokens > plan.position(part.sequence, part.row_end - 1);
      ASSERT_TRUE(all || part.merge >= 0);
      for (std::int64_t row = part.row_begin; row < part.row_end; ++row)
        for (std::int64_t head = unit.head_begin; head < unit.head_end; ++head)
          for (std::int64_t piece = unit.piece_begin; piece < unit.piece_end; ++piece)
            ++met[{part.sequence, row, head, piece}];
    }
    ASSERT_LE(rows * (unit.head_end - unit.head_begin), kAttentionRows);
  }
  for (std::size_t s = 0; s < step.lengths.size(); ++s) {
    const std::int64_t rows = (step.starts[s + 1] - step.starts[s]) * plan.group();
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t head = 0; head < kSpec.kv_heads; ++head)
        for (std::int64_t piece = first_piece(plan, static_cast<std::int32_t>(s), row);
             piece * kPieceTokens <= plan.position(static_cast<std::int32_t>(s), row); ++piece)
          ASSERT_EQ((met[{static_cast<std::int64_t>(s), row, head, piece}]), 1)
              << "sequence " << s << " row " << row << " head " << head << " piece " << piece;
  }
}

TEST(CpuAttentionPlan, MeetsEverythingOnce) {
  TestRandom random(31);
  for (int round = 0; round < 40; ++round) {
    Step step;
    step.stride = kLongest / kSpec.block_size;
    const int sequences = random.integer(1, 12);
    std::int32_t fresh = 0;
    for (int s = 0; s < sequences; ++s) {
      const int length = random.integer(1, random.coin() ? 300 : 3000);
      const int queries = random.coin() ? 1 : random.integer(0, std::min(length, 200));
      step.starts.push_back(step.starts.back() + queries);
      step.lengths.push_back(length);
      const int like = s > 0 && random.coin() ? random.integer(0, s - 1) : s;
      const std::int64_t common = random.integer(0, static_cast<int>(step.stride));
      for (std::int64_t b = 0; b < step.stride; ++b)
        step.tables.push_back(
            like < s && b < common ? step.tables[static_cast<std::size_t>(like * step.stride + b)] : fresh++);
    }
    const auto plan = plan_for(sequences, std::max(1, step.starts.back()), random.integer(1, 8),
                               random.pick({0, 1, 100, 700, 2000}));
    plan->fill({step.starts, step.lengths, step.tables, step.stride});
    expect_all_once(*plan, step);
  }
}

TEST(CpuAttentionPlan, ReadsASharedPrefixOnce) {
  constexpr int kSequences = 16;
  constexpr int kShared = 2000;
  Step step;
  step.stride = 140;
  for (int s = 0; s < kSequences; ++s) {
    step.starts.push_back(s + 1);
    step.lengths.push_back(2100 + s);
    for (int b = 0; b < step.stride; ++b) step.tables.push_back(b < kShared / 16 ? b : 1000 * (s + 1) + b);
  }
  const auto plan = plan_for(kSequences, kSequences, 4);
  plan->fill({step.starts, step.lengths, step.tables, step.stride});
  expect_all_once(*plan, step);
  std::int64_t head_pieces = 0;
  for (const AttentionUnit& unit : plan->units())
    head_pieces += (unit.head_end - unit.head_begin) * (unit.piece_end - unit.piece_begin);
  // 7 full pieces are shared, and each sequence has two more.
  EXPECT_EQ(head_pieces, kSpec.kv_heads * (7 + kSequences * 2));
}

// A window of 1,024 tokens overlaps five of 512 pieces, which are divided among all threads.
TEST(CpuAttentionPlan, SharesOutWhatAWindowSees) {
  constexpr int kThreads = 4, kWindow = 1024, kLength = 1 << 17;
  const std::vector<std::int32_t> table(kLength / 16, 0);
  const auto plan = plan_for(1, 1, kThreads, kWindow, kLength);
  const std::vector<std::int32_t> starts{0, 1}, lengths{kLength - 100};
  plan->fill({starts, lengths, table, kLength / 16});
  std::int64_t head_pieces = 0;
  for (const AttentionUnit& unit : plan->units()) {
    const std::int64_t of_unit = (unit.head_end - unit.head_begin) * (unit.piece_end - unit.piece_begin);
    EXPECT_LE(of_unit, 2);
    head_pieces += of_unit;
  }
  EXPECT_EQ(head_pieces, kSpec.kv_heads * 5);
}

// Each block of rows processes only the pieces that the windows of its rows overlap.
TEST(CpuAttentionPlan, PromptsSkipWhatNoRowSees) {
  constexpr int kWindow = 1024, kLength = 1 << 15, kQueries = 480;
  const std::vector<std::int32_t> table(kLength / 16, 0);
  const auto plan = plan_for(1, kQueries, 2, kWindow, kLength);
  const std::vector<std::int32_t> starts{0, kQueries}, lengths{kLength};
  plan->fill({starts, lengths, table, kLength / 16});
  for (const AttentionUnit& unit : plan->units()) EXPECT_LE(unit.piece_end - unit.piece_begin, 6);
}

TEST(CpuAttentionPlan, NoMemoryIsAnError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the program instead";
#endif
  const auto plan = CpuAttentionPlan::make({.max_tokens = 1 << 30,
                                            .max_sequences = 1 << 30,
                                            .max_length = 1 << 30,
                                            .q_heads = kQueryHeads,
                                            .kv = kSpec},
                                           4, 12);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::resource_exhausted);
}

}  // namespace
}  // namespace octavo::cpu
