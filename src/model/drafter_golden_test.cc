// Compares the drafters in tests/data/drafters with torch. tools/goldens/make_drafter_goldens.py makes the
// data.
#include "model/drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

struct Case {
  const char* name;
  const char* target;
  Result<Drafter> (*load)(const std::string&, const Model&, Backend&, const LoadOptions&);
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string in_data(const std::string& name) { return std::string(golden::kDrafters) + "/" + name; }

class DrafterGolden : public testing::TestWithParam<Case> {};

TEST_P(DrafterGolden, LogitsAreThoseOfTorch) {
  const auto [name, target, load] = GetParam();
  const golden::Golden golden = golden::read(name, golden::kDrafters);
  std::vector<Backend> backends;
  backends.push_back(make_reference_backend());
  backends.push_back(make_cpu_backend({.threads = 2, .isa = {}}).value());
  for (Backend& backend : backends) {
    SCOPED_TRACE(backend.name);
    const auto model = Model::load(in_data(target), backend, {.dtype = ModelDType::float32});
    ASSERT_TRUE(model) << model.error().message;
    const auto drafter = load(in_data(name), **model, backend, {});
    ASSERT_TRUE(drafter) << drafter.error().message;
    const CacheOptions cache{.dtype = (*model)->activation};
    const auto run = [&](int chunk) {
      return golden::run_drafter(**model, *drafter, backend, golden.ids, chunk, cache).value();
    };
    const golden::DrafterLogits whole = run(static_cast<int>(golden.ids.size()));
    // An EAGLE head has no last norm, so its logits may be large. For Qwen 3.5 with experts, torch's f32
    // differs from double precision by 2.01e-5 of the largest logit.
    const float near = std::max(1e-4F, 2.5e-5F * std::ranges::max(golden.logits));
    EXPECT_LE(golden::max_difference(whole.logits, golden.logits), near);
    EXPECT_LE(golden::max_difference(whole.next, golden.next_logits), near);
    for (const int chunk : {1, 7}) {
      const golden::DrafterLogits pieces = run(chunk);
      EXPECT_EQ(pieces.logits, whole.logits) << chunk;
      EXPECT_EQ(pieces.next, whole.next) << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, DrafterGolden,
                         testing::Values(Case{"deepseek_v3", "deepseek_v3", load_predictor},
                                         Case{"glm4_moe", "glm4_moe", load_predictor},
                                         Case{"mimo", "mimo", load_predictor},
                                         Case{"qwen3_next", "qwen3_next", load_predictor},
                                         Case{"qwen3_5_moe", "qwen3_5_moe", load_predictor},
                                         Case{"ernie4_5_moe", "ernie4_5_moe", load_predictor},
                                         Case{"eagle", "llama", load_eagle},
                                         Case{"eagle3", "llama", load_eagle3},
                                         Case{"eagle3-speculators", "llama", load_eagle3},
                                         Case{"eagle3-layers", "llama", load_eagle3}),
                         [](const auto& param) {
                           std::string name = param.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Drafter, WhatDoesNotFitIsRefused) {
  Backend backend = make_reference_backend();
  const auto llama = Model::load(in_data("llama"), backend, {}).value();
  const auto other = Model::load("tests/data/models/llama", backend, {}).value();
  const auto error = [](const Result<Drafter>& loaded) {
    return loaded ? "" : fmt::format("{}: {}", loaded.error().field, loaded.error().message);
  };
  using testing::HasSubstr;
  EXPECT_THAT(error(load_predictor(in_data("llama"), *llama, backend, {})),
              HasSubstr("speculative_config: LlamaForCausalLM has no layers for multi-token prediction"));
  EXPECT_THAT(error(load_eagle3(in_data("eagle"), *llama, backend, {})),
              HasSubstr("tensor fc.weight has shape [48, 96]"));
  EXPECT_THAT(error(load_eagle(in_data("llama"), *llama, backend, {})), HasSubstr("num_hidden_layers is 8"));
  EXPECT_THAT(error(load_eagle(in_data("eagle"), *other, backend, {})), HasSubstr("hidden_size is 48"));
  EXPECT_THAT(error(load_eagle3(in_data("eagle3"), *other, backend, {})), HasSubstr("48 columns"));
}

}  // namespace
}  // namespace octavo
