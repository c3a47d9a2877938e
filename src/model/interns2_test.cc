// Intern-S2 Preview is Qwen3.5 with another encoder beside it.
#include <gtest/gtest.h>

#include "kernels/backends.h"
#include "model/model.h"

namespace octavo {
namespace {

TEST(InternS2, IsQwen35BesideAnEncoderOfTimeSeries) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const auto load = [&](const char* architecture) {
    return Model::load("tests/data/vision/qwen3_5_moe_vl", backend,
                       {.dtype = ModelDType::float32,
                        .reading = {.overrides = {{"architectures", {architecture}}}}});
  };
  const auto qwen = load("Qwen3_5MoeForConditionalGeneration"), intern = load("InternS2PreviewForConditionalGeneration");
  ASSERT_TRUE(qwen.has_value()) << qwen.error().message;
  ASSERT_TRUE(intern.has_value()) << intern.error().message;
  EXPECT_EQ((*intern)->spec.layers.size(), (*qwen)->spec.layers.size());
  ASSERT_TRUE((*intern)->tower != nullptr);
  const auto ignores = [](const Names& names) {
    return std::ranges::count(names.ignorable, "model.time_series.*") == 1;
  };
  EXPECT_TRUE(ignores((*intern)->spec.names));
  EXPECT_TRUE(ignores((*intern)->tower->spec.names));
  EXPECT_FALSE(ignores((*qwen)->spec.names));
}

}  // namespace
}  // namespace octavo
