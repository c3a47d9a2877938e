#include "engine/draft/options.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

std::string wrong_field(const SpeculativeOptions& options) {
  const Result<> valid = validate(options);
  return valid ? "" : valid.error().field;
}

TEST(SpeculativeOptions, HaveLimits) {
  EXPECT_EQ(wrong_field({}), "");
  EXPECT_EQ(wrong_field({.num_speculative_tokens = 0}), "num_speculative_tokens");
  EXPECT_EQ(wrong_field({.num_speculative_tokens = kDraftTokensMax + 1}), "num_speculative_tokens");
  EXPECT_EQ(wrong_field({.method = NgramOptions{0, 1}}), "prompt_lookup_min");
  EXPECT_EQ(wrong_field({.method = NgramOptions{3, 2}}), "prompt_lookup_max");
  EXPECT_EQ(wrong_field({.method = SuffixOptions{}}), "");
  EXPECT_EQ(wrong_field({.method = SuffixOptions{.max_tree_depth = 1}}), "suffix_decoding_max_tree_depth");
  EXPECT_EQ(wrong_field({.method = SuffixOptions{.max_cached_requests = -1}}),
            "suffix_decoding_max_cached_requests");
  EXPECT_EQ(wrong_field({.method = SuffixOptions{.max_spec_factor = -1}}), "suffix_decoding_max_spec_factor");
  EXPECT_EQ(wrong_field({.method = SuffixOptions{.min_token_prob = 2}}), "suffix_decoding_min_token_prob");
  EXPECT_EQ(wrong_field({.method = DraftModelOptions{.model = "folder"}}), "");
  EXPECT_EQ(wrong_field({.method = DraftModelOptions{}}), "model");
  EXPECT_EQ(wrong_field({.method = DraftModelOptions{.model = "folder", .max_model_len = 1}}),
            "max_model_len");
  EXPECT_EQ(wrong_field({.method = PositionHeadOptions{.model = "folder"}}), "");
  EXPECT_EQ(wrong_field({.method = PositionHeadOptions{}}), "model");
}

TEST(SpeculativeOptions, RangesOfBatchSizesAscend) {
  using Ranges = std::vector<TokensPerBatchSize>;
  constexpr auto* kField = "num_speculative_tokens_per_batch_size";
  for (const Ranges& good : {Ranges{{1, 4, 5}, {5, 8, 0}}, Ranges{{2, 2, 1}, {9, 12, 3}}})
    EXPECT_EQ(wrong_field({.per_batch_size = good}), "");
  for (const Ranges& bad : {Ranges{{0, 4, 5}}, Ranges{{4, 2, 5}}, Ranges{{1, 4, 5}, {4, 8, 0}},
                            Ranges{{1, 4, 6}}, Ranges{{1, 4, -1}}})
    EXPECT_EQ(wrong_field({.per_batch_size = bad}), kField);
}

}  // namespace
}  // namespace octavo
