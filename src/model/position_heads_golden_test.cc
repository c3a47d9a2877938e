// Compares Medusa heads and MLP speculators with torch. tools/goldens/make_drafter_goldens.py makes the data
// in tests/data/drafters.
#include "model/position_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

using Load = Result<std::unique_ptr<PositionHeads>> (*)(const std::string&, const Model&, Backend&,
                                                        const LoadOptions&);

struct Case {
  const char* name;
  Load load;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string in_data(const std::string& name) { return std::string(golden::kDrafters) + "/" + name; }

class PositionHeadsGolden : public testing::TestWithParam<Case> {};

TEST_P(PositionHeadsGolden, LogitsAreThoseOfTorch) {
  const auto [name, load] = GetParam();
  const golden::Golden golden = golden::read(name, golden::kDrafters);
  const auto length = static_cast<int>(golden.ids.size());
  std::vector<Backend> backends;
  backends.push_back(make_reference_backend());
  backends.push_back(make_cpu_backend({.threads = 2, .isa = {}}).value());
  for (Backend& backend : backends) {
    SCOPED_TRACE(backend.name);
    const auto model = Model::load(in_data("llama"), backend, {.dtype = ModelDType::float32}).value();
    const auto heads = load(in_data(name), *model, backend, {});
    ASSERT_TRUE(heads) << heads.error().message;
    ASSERT_TRUE((*heads)->reserve(length));
    EXPECT_EQ((*heads)->positions(), 3);
    const auto run = [&](int chunk) {
      return golden::run_position_heads(*model, **heads, backend, golden.ids, chunk,
                                        {.dtype = model->activation})
          .value();
    };
    const std::vector<float> whole = run(length);
    ASSERT_EQ(whole.size(), golden.logits.size());
    const auto larger = [](float a, float b) { return std::abs(a) < std::abs(b); };
    const float near = std::max(1e-4F, 2e-5F * std::abs(std::ranges::max(golden.logits, larger)));
    EXPECT_LE(golden::max_difference(whole, golden.logits), near);
    for (const int chunk : {1, 7}) EXPECT_EQ(run(chunk), whole) << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, PositionHeadsGolden,
                         testing::Values(Case{"medusa", load_medusa}, Case{"medusa-authors", load_medusa},
                                         Case{"medusa-token-map", load_medusa},
                                         Case{"medusa-borrowing", load_medusa},
                                         Case{"mlp-speculator", load_mlp_speculator},
                                         Case{"mlp-speculator-tied", load_mlp_speculator}),
                         [](const auto& param) {
                           std::string name = param.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(PositionHeads, ASmallerVocabularyStandsForItsTokens) {
  Backend backend = make_reference_backend();
  const auto llama = Model::load(in_data("llama"), backend, {}).value();
  const auto heads = load_medusa(in_data("medusa-token-map"), *llama, backend, {}).value();
  EXPECT_EQ(heads->model().spec.vocab, 80);
  ASSERT_EQ(heads->tokens().size(), 80u);
  EXPECT_LT(std::ranges::max(heads->tokens()), 128);
  EXPECT_FALSE(std::ranges::is_sorted(heads->tokens()));
}

TEST(PositionHeads, WhatDoesNotFitIsRefused) {
  Backend backend = make_reference_backend();
  const auto llama = Model::load(in_data("llama"), backend, {}).value();
  const auto other = Model::load("tests/data/models/llama", backend, {}).value();
  const auto error = [](const auto& loaded) {
    return loaded ? "" : fmt::format("{}: {}", loaded.error().field, loaded.error().message);
  };
  using testing::HasSubstr;
  EXPECT_THAT(error(load_medusa(in_data("eagle"), *llama, backend, {})),
              HasSubstr("speculative_config: the checkpoint has no Medusa heads: neither tensor "
                        "blocks.0.layers.0.weight nor"));
  EXPECT_THAT(error(load_medusa(in_data("medusa"), *other, backend, {})),
              HasSubstr("tensor blocks.0.layers.0.weight has shape [48, 48]"));
  EXPECT_THAT(error(load_mlp_speculator(in_data("mlp-speculator"), *other, backend, {})),
              HasSubstr("emb_dim is 48"));
  EXPECT_THAT(error(load_mlp_speculator(in_data("medusa"), *llama, backend, {})),
              HasSubstr("emb_dim is 4096"));
  EXPECT_THAT(error(load_mlp_speculator(in_data("no-such-heads"), *llama, backend, {})),
              HasSubstr("no-such-heads"));
}

}  // namespace
}  // namespace octavo
