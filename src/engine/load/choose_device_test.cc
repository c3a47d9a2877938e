#include "engine/load/choose_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/load/load.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

using testing::HasSubstr;

EngineOptions options_on(std::string device) {
  EngineOptions options;
  options.model.dir = "models/demo";
  options.device.type = std::move(device);
  options.device.threads = 1;
  return options;
}

Result<> runs(const Backend&) { return {}; }

TEST(LoadEngine, UnknownQuantizationsAreRefusedWithTheKnownOnes) {
  EngineOptions options = options_on("cpu");
  options.model.quantization = "int9";
  const auto engine = load_engine(options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().field, "quantization");
  EXPECT_EQ(engine.error().message,
            "must be int8 or int4 (quantises plain matrices while loading) or none, got int9");
}

TEST(ChooseDevice, TakesTheOneThatIsNamed) {
  EXPECT_EQ(choose_device(options_on("cpu"), 0, runs)->name, "cpu");
  EXPECT_EQ(choose_device(options_on("reference"), 0, runs)->name, "reference");
  EXPECT_THAT(choose_device(options_on("abacus"), 0, runs).error().message,
              HasSubstr("must be auto, cpu, cuda or reference"));
}

TEST(ChooseDevice, AutoIsAGpuWhereThereIsOne) {
  const bool gpu = make_cuda_backend().has_value();
  EXPECT_EQ(choose_device(options_on("auto"), 0, runs)->name, gpu ? "cuda" : "cpu");
}

// In builds without CUDA, the GPU is emulated.
TEST(ChooseDevice, AutoNeverMeansTheCpuForAnOption) {
  if (!make_cuda_backend()) GTEST_SKIP() << "no GPU";
  EngineOptions ranks = options_on("auto");
  ranks.parallel.tensor_parallel_size = 2;
  EXPECT_EQ(choose_device(ranks, 1, runs)->name, "cuda");
  ranks.parallel.enable_expert_parallel = ranks.parallel.expert_balancing.enabled = true;
  const Error refused = load_engine(ranks).error();
  EXPECT_EQ(refused.field, "enable_eplb");
  EXPECT_THAT(refused.message,
              HasSubstr("not supported with several ranks on GPUs: remove it, set --device cpu"));
}

TEST(ChooseDevice, RanksOnTheCpuAreNoQuestion) {
  EngineOptions ranks = options_on("cpu");
  ranks.parallel.tensor_parallel_size = 2;
  EXPECT_EQ(choose_device(ranks, 0, runs)->name, "cpu");
}

// The CPU is selected only if the GPU cannot run the model. An unsupported option or an unreadable model is
// an error.
TEST(ChooseDevice, AutoIsTheCpuForAModelThatTheGpuLacksAPartOf) {
  if (!make_cuda_backend()) GTEST_SKIP() << "no GPU";
  const auto with = [](std::string field, ErrorCode code) {
    return choose_device(options_on("auto"), 0, [&](const Backend&) -> Result<> {
      return std::unexpected(Error{.code = code, .message = "no", .field = field});
    });
  };
  EXPECT_EQ(with("device", ErrorCode::unsupported)->name, "cpu");
  EXPECT_EQ(with("kv_cache_dtype", ErrorCode::unsupported).error().field, "kv_cache_dtype");
  EXPECT_EQ(with("model", ErrorCode::not_found).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace octavo
