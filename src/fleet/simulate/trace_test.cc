#include "fleet/simulate/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/scratch_directory.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTwo =
    R"({"timestamp": 3000, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]}
{"timestamp": 1500, "input_length": 1030, "output_length": 0, "hash_ids": [7, 8, 3]}
)";

std::vector<TokenId> tokens_of(const Trace& trace, std::size_t request) {
  std::vector<TokenId> tokens;
  write_tokens(trace, trace.requests[request], tokens);
  return tokens;
}

std::string text_of(const Trace& trace, std::size_t request) {
  std::string text;
  write_text(trace, trace.requests[request], text);
  return text;
}

std::size_t common(const auto& a, const auto& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

TEST(Trace, IsReadInOrderOfArrival) {
  const auto trace = parse_mooncake_trace(kTwo, 512);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 2U);
  EXPECT_EQ(trace->requests[0].arrival_us, 1'500'000);
  EXPECT_EQ(trace->requests[0].output_tokens, 1) << "0 is told as 1";
  EXPECT_EQ(trace->requests[1].input_tokens, 1100);
  EXPECT_EQ(trace->block_limit, 10U);
}

TEST(Trace, PromptsShareWhatTheirBlocksShare) {
  const auto trace = *parse_mooncake_trace(kTwo, 512);
  const auto a = tokens_of(trace, 0), b = tokens_of(trace, 1);
  EXPECT_EQ(a.size(), 1030U);
  EXPECT_EQ(common(a, b), 1024U);
  EXPECT_TRUE(std::ranges::all_of(a, [](TokenId t) { return t >= 0; }));
  const auto x = text_of(trace, 0), y = text_of(trace, 1);
  EXPECT_EQ(x.size(), 129U);
  EXPECT_EQ(common(x, y), 128U);
}

TEST(Trace, CopiesHavePromptsOfTheirOwnAndComeLater) {
  auto trace = *parse_mooncake_trace(kTwo, 512);
  ASSERT_TRUE(change_trace(trace, {.copies = 3, .seed = 5}));
  ASSERT_EQ(trace.requests.size(), 6U);
  EXPECT_TRUE(std::ranges::is_sorted(trace.requests, {}, &TraceRequest::arrival_us));
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_EQ(common(tokens_of(trace, i), tokens_of(trace, j)),
                trace.requests[i].copy == trace.requests[j].copy ? 1024U : 0U);
  auto again = *parse_mooncake_trace(kTwo, 512);
  ASSERT_TRUE(change_trace(again, {.copies = 3, .seed = 5}));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(again.requests[i].arrival_us, trace.requests[i].arrival_us);
}

TEST(Trace, CanBeCutShortAndSpedUp) {
  auto trace = *parse_mooncake_trace(kTwo, 512);
  ASSERT_TRUE(change_trace(trace, {.requests_max = 1, .speedup = 3}));
  ASSERT_EQ(trace.requests.size(), 1U);
  EXPECT_EQ(trace.requests[0].arrival_us, 500'000);
  EXPECT_EQ(change_trace(trace, {.copies = 100'000'000}).error().field, "copies");
}

TEST(Trace, ErrorsNameLineAndField) {
  const auto error = [](std::string_view line) {
    return parse_mooncake_trace("\n" + std::string(line) + "\n", 512).error();
  };
  EXPECT_THAT(error("{").message, HasSubstr("line 2"));
  EXPECT_THAT(error("[]").message, HasSubstr("line 2"));
  EXPECT_EQ(error(R"({"input_length": 1, "output_length": 1, "hash_ids": [1]})").field, "timestamp");
  EXPECT_EQ(error(R"({"timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": [1]})").field,
            "timestamp");
  EXPECT_EQ(error(R"({"timestamp": 0, "input_length": 0, "output_length": 1, "hash_ids": []})").field,
            "input_length");
  EXPECT_EQ(error(R"({"timestamp": 0, "input_length": 1e99, "output_length": 1, "hash_ids": []})").field,
            "input_length");
  EXPECT_EQ(error(R"({"timestamp": 0, "input_length": 1, "output_length": "x", "hash_ids": []})").field,
            "output_length");
  for (const char* ids : {"[]", "[1, 2]", "[-1]", "[null]", "[4294967295]", "7"})
    EXPECT_EQ(error(fmt::format(
                        R"({{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": {}}})", ids))
                  .field,
              "hash_ids");
  EXPECT_FALSE(parse_mooncake_trace("\n\n", 512)) << "the trace contains no requests";
}

TEST(Trace, IsReadFromAFile) {
  const ScratchDirectory scratch;
  scratch.write("trace.jsonl", kTwo);
  EXPECT_TRUE(read_mooncake_trace((scratch / "trace.jsonl").string(), 512));
  EXPECT_EQ(read_mooncake_trace((scratch / "none").string(), 512).error().code, ErrorCode::not_found);
  scratch.write("bad.jsonl", "{}");
  EXPECT_THAT(read_mooncake_trace((scratch / "bad.jsonl").string(), 512).error().message,
              HasSubstr("bad.jsonl: line 1"));
}

}  // namespace
}  // namespace octavo::fleet
