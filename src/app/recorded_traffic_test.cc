#include "app/recorded_traffic.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/testing/scratch_directory.h"
#include "record/record.h"

namespace octavo {
namespace {

std::string line(std::int64_t arrived_us, std::vector<TokenId> prompt, std::vector<std::int64_t> counts,
                 bool hashes_only = false) {
  Record record{.arrived_us = arrived_us};
  record.request.emplace().prompt = std::move(prompt);
  for (std::size_t i = 0; i < counts.size(); ++i)
    record.answers.push_back({.index = static_cast<int>(i), .count = counts[i]});
  return record_line(std::move(record), hashes_only) + "\n";
}

TEST(RecordedTraffic, PromptsShareTheBlocksThatTheyShared) {
  std::vector<TokenId> one(40), other(40);
  std::iota(one.begin(), one.end(), 0);
  std::iota(other.begin(), other.end(), 0);
  // the second block differs; the third is equal, but follows a different one
  other[20] = 999;
  const ScratchDirectory folder;
  folder.write("requests-1.jsonl", line(2'000'500, other, {3}) + line(1'000'000, one, {5, 0}));
  ASSERT_TRUE(is_recorded_traffic(folder.path()));
  const auto trace = read_recorded_traffic(folder.path(), 16);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 3u);
  EXPECT_EQ(trace->requests[0].arrival_us, 0);
  EXPECT_EQ(trace->requests[0].output_tokens, 5);
  EXPECT_EQ(trace->requests[1].output_tokens, 1);
  EXPECT_EQ(trace->requests[2].arrival_us, 1'000'500);
  EXPECT_EQ(trace->requests[2].input_tokens, 40);
  const auto blocks = [&](int request) {
    const auto first = trace->blocks.begin() + trace->requests[static_cast<std::size_t>(request)].first_block;
    return std::vector<std::uint32_t>(first, first + 3);
  };
  EXPECT_EQ(blocks(0), blocks(1));
  EXPECT_EQ(blocks(0)[0], blocks(2)[0]);
  EXPECT_NE(blocks(0)[1], blocks(2)[1]);
  EXPECT_NE(blocks(0)[2], blocks(2)[2]);
}

TEST(RecordedTraffic, RecordsOfHashesAreRefused) {
  const ScratchDirectory folder;
  folder.write("requests-1.jsonl", line(1, {1, 2}, {3}, true));
  const auto trace = read_recorded_traffic(folder / "requests-1.jsonl", 16);
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("hashes"), std::string::npos);
}

}  // namespace
}  // namespace octavo
