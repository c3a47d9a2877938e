// Architectures whose network is that of another one: they load its checkpoint and have its spec.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/backends.h"
#include "model/model.h"

namespace octavo {
namespace {

struct SameNetwork {
  const char* folder;
  const char* architecture;
};

class SameNetworks : public testing::TestWithParam<SameNetwork> {
 protected:
  static Result<std::unique_ptr<Model>> load(Backend& backend, const char* architecture) {
    LoadOptions options{.dtype = ModelDType::float32};
    if (architecture != nullptr)
      options.reading.overrides["architectures"] = boost::json::array{architecture};
    return Model::load(std::string("tests/data/vision/") + GetParam().folder, backend, options);
  }
};

TEST_P(SameNetworks, Load) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const auto known = load(backend, nullptr), other = load(backend, GetParam().architecture);
  ASSERT_TRUE(known.has_value()) << known.error().message;
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ((*other)->spec.architecture, GetParam().architecture);
  EXPECT_EQ((*other)->spec.layers.size(), (*known)->spec.layers.size());
  EXPECT_EQ((*other)->spec.media.token, (*known)->spec.media.token);
  ASSERT_TRUE((*other)->tower != nullptr);
  EXPECT_EQ((*other)->tower->spec.layers.size(), (*known)->tower->spec.layers.size());
  EXPECT_EQ((*other)->tower->spec.joined(), (*known)->tower->spec.joined());
}

INSTANTIATE_TEST_SUITE_P(Families, SameNetworks,
                         testing::Values(SameNetwork{"internvl", "InternS1ForConditionalGeneration"},
                                         SameNetwork{"internvl_chat", "SkyworkR1VChatModel"},
                                         SameNetwork{"internvl_chat", "H2OVLChatModel"},
                                         SameNetwork{"nemotron_omni", "NemotronH_Omni_Reasoning_V3"},
                                         SameNetwork{"nemotron_omni", "NemotronH_Super_Omni_Reasoning_V3"},
                                         SameNetwork{"ovis2_5", "Ovis2_6ForCausalLM"},
                                         SameNetwork{"ovis2_5", "Ovis2_6_MoeForCausalLM"},
                                         SameNetwork{"qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration"},
                                         SameNetwork{"qwen3_5_moe_vl",
                                                     "InternS2PreviewForConditionalGeneration"}),
                         [](const auto& test) { return std::string(test.param.architecture); });

// Intern-S2 has an encoder of time series beside Qwen3.5's parts.
TEST(InternS2, IgnoresItsEncoderOfTimeSeries) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  LoadOptions options{.dtype = ModelDType::float32};
  options.reading.overrides["architectures"] = boost::json::array{"InternS2PreviewForConditionalGeneration"};
  const auto model = Model::load("tests/data/vision/qwen3_5_moe_vl", backend, options);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  for (const ModelSpec* spec : {&(*model)->spec, &(*model)->tower->spec})
    EXPECT_EQ(std::ranges::count(spec->names.ignorable, "model.time_series.*"), 1);
}

}  // namespace
}  // namespace octavo
