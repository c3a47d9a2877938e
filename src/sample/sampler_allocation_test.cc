// Tests that a step allocates no memory after the first steps. Requested logprobs are an exception, because
// they belong to the result.
#include <gtest/gtest.h>

#include "base/testing/allocations.h"
#include "kernels/backends.h"
#include "sample/sampler.h"

namespace octavo {
namespace {

TEST(SamplerAllocation, NoneInAWarmStep) {
  constexpr int kVocab = 2000;
  std::vector<SamplingParams> params(16);
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (i % 2 == 0) params[i].top_p = 0.9;
    if (i % 3 == 0) params[i].top_k = 40;
    if (i % 4 == 0) params[i].penalties.frequency = 1;
    if (i % 5 == 0) params[i].tokens.bad_word_ids = {{7}, {8, 9}};
    if (i % 7 == 0) params[i].tokens.allowed_token_ids = {1, 2, 3};
  }
  const std::vector<TokenId> output{4, 5, 6};
  std::vector<SequenceSampling> sequences;
  std::vector<SampleRow> rows;
  for (const SamplingParams& p : params)
    sequences.emplace_back(p, output, std::vector<TokenId>{0}, 1, kVocab);
  for (SequenceSampling& s : sequences) {
    for (const TokenId id : output) s.append(id);
    rows.push_back({&s, output});
  }
  std::vector<float> logits(params.size() * kVocab);
  const View view = View::of(logits.data(), DType::f32, {static_cast<std::int64_t>(params.size()), kVocab});
  Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  Sampler sampler(backend, {});
  ASSERT_TRUE(sampler.reserve(view.size(0), kVocab));
  const auto step = [&] {
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 97) / 10;
    EXPECT_TRUE(sampler.launch(view, rows));
    EXPECT_EQ(sampler.collect().size(), rows.size());
  };
  step();
  const long before = allocations();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(allocations(), before);
}

}  // namespace
}  // namespace octavo
