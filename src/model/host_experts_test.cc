// Compares models on the CUDA backend whose experts the CPU computes (HostUse::cpu_computes) with
// transformers.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

using golden::Golden;

constexpr int kEveryLayer = 1000;

class HostExperts : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_cuda_backend();
    if (!made) GTEST_SKIP() << made.error().message;
    backend_.emplace(*std::move(made));
  }
  std::unique_ptr<Model> load(const Golden& golden, ModelDType dtype, int expert_layers) {
    auto model = Model::load(golden.directory, *backend_,
                             {.dtype = dtype,
                              .max_model_len = golden.max_model_len,
                              .threads = 2,
                              .host_weights = {.expert_layers = expert_layers}});
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
    return model ? std::move(*model) : nullptr;
  }
  std::vector<float> logits(const Model& model, const Golden& golden, const std::vector<int>& chunks) {
    return golden::run(model, *backend_, golden.ids, chunks, {.dtype = model.activation})
        .value_or(std::vector<float>{});
  }
  static std::vector<int> whole(const Golden& golden) { return {static_cast<int>(golden.ids.size())}; }

  std::optional<Backend> backend_;
};

class HostExpertsInNumbers : public HostExperts, public testing::WithParamInterface<const char*> {};
class HostExpertsInCodes : public HostExperts, public testing::WithParamInterface<const char*> {};

std::string test_name(const testing::TestParamInfo<const char*>& param) {
  std::string text = param.param;
  std::ranges::replace(text, '-', '_');
  return text;
}

TEST_P(HostExpertsInNumbers, LogitsAreThoseOfTransformers) {
  const Golden golden = golden::read(GetParam());
  for (const int layers : {1, kEveryLayer}) {
    const auto model = load(golden, ModelDType::float32, layers);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->host_layers.gpu_reads, 0);
    EXPECT_EQ(model->host_layers.cpu_computes > 0, model->host_weight_bytes > 0);
    EXPECT_TRUE(layers == 1 || model->host_layers.cpu_computes > 0);
    const auto all = logits(*model, golden, whole(golden));
    EXPECT_LE(golden::max_difference(all, golden.logits), 1e-4f) << layers;
    EXPECT_EQ(all, logits(*model, golden, {13, 1, 2, 16})) << layers;
  }
}
// Biases; inputs that are weighed; shared experts; experts that do nothing; a dense MLP beside experts.
INSTANTIATE_TEST_SUITE_P(Models, HostExpertsInNumbers,
                         testing::Values("qwen3_moe", "gpt_oss", "llama4", "deepseek_v3", "longcat_flash",
                                         "gemma4-experts"),
                         test_name);

// The CPU rounds activations to 8 bits in products with integer codes.
TEST_P(HostExpertsInCodes, AreClose) {
  const Golden golden = golden::read(GetParam(), golden::kQuantized);
  const auto model = load(golden, ModelDType::automatic, kEveryLayer);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(model->host_layers.cpu_computes, 0);
  EXPECT_EQ(model->host_layers.gpu_reads, 0);
  const auto all = logits(*model, golden, whole(golden));
  const double kl = golden::mean_kl(golden.logits, all, model->spec.vocab);
  fmt::print("KL {:<24} {:.1e}\n", golden.name, kl);
  EXPECT_LE(kl, 5e-3);
  EXPECT_EQ(all, logits(*model, golden, {1, 7}));
}
INSTANTIATE_TEST_SUITE_P(Formats, HostExpertsInCodes,
                         testing::Values("gpt_oss-mxfp4", "qwen3_moe-gptq-4bit", "qwen3_moe-nvfp4",
                                         "qwen3_moe-w4a16-group", "deepseek_v4-fp8-mxfp4"),
                         test_name);

// Only the GPU rounds activations to fp8, so it reads the experts. Results keep their bits.
TEST_F(HostExperts, AreReadByTheGpuIfActivationsAreRoundedToFp8) {
  const Golden golden = golden::read("deepseek_v4-fp8-mxfp4", golden::kQuantized);
  const auto run = [&](int layers) {
    const auto model =
        Model::load(golden.directory, *backend_,
                    {.fp8_activations = true, .threads = 2, .host_weights = {.expert_layers = layers}})
            .value();
    EXPECT_EQ(model->host_layers.cpu_computes, 0);
    EXPECT_EQ(model->host_layers.gpu_reads > 0, layers > 0);
    return logits(*model, golden, whole(golden));
  };
  EXPECT_EQ(run(kEveryLayer), run(0));
}

}  // namespace
}  // namespace octavo
