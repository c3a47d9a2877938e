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
  options.model_dir = "models/demo";
  options.device = std::move(device);
  options.threads = 1;
  return options;
}

TEST(ChooseDevice, TakesTheOneThatIsNamed) {
  EXPECT_EQ(choose_device(options_on("cpu"))->name, "cpu");
  EXPECT_EQ(choose_device(options_on("reference"))->name, "reference");
  EXPECT_THAT(choose_device(options_on("abacus")).error().message, HasSubstr("must be auto, cpu, cuda or reference"));
}

TEST(ChooseDevice, AutoIsAGpuWhereThereIsOne) {
  const bool gpu = make_cuda_backend().has_value();
  EXPECT_EQ(choose_device(options_on("auto"))->name, gpu ? "cuda" : "cpu");
}

// Tests of builds without CUDA have an emulated GPU.
TEST(ChooseDevice, AutoNeverMeansTheCpuForAnOption) {
  if (!make_cuda_backend()) GTEST_SKIP() << "no GPU";
  EngineOptions ranks = options_on("auto");
  ranks.tensor_parallel_size = 2;
  EXPECT_THAT(choose_device(ranks).error().message, HasSubstr("set --device cpu"));
  EXPECT_EQ(load_engine(ranks).error().field, "device");
  EngineOptions engines = options_on("auto");
  engines.data_parallel_size = 2;
  const auto engine = load_engine(engines);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().field, "data_parallel_size");
  EXPECT_THAT(engine.error().message, HasSubstr("set --device cpu"));
}

TEST(ChooseDevice, RanksOnTheCpuAreNoQuestion) {
  EngineOptions ranks = options_on("cpu");
  ranks.tensor_parallel_size = 2;
  EXPECT_EQ(choose_device(ranks)->name, "cpu");
}

TEST(ChooseDevice, FallsBackForTheModelAlone) {
  const auto refused = [](std::string_view field, ErrorCode code = ErrorCode::unsupported) {
    return Error{.code = code, .message = "no", .field = std::string(field)};
  };
  for (const char* field : {"", "device", "head_dim", "kv_lora_rank", "index_head_dim"})
    EXPECT_TRUE(falls_back(refused(field))) << field;
  for (const char* field : {"tensor_parallel_size", "data_parallel_size", "kv_cache_dtype", "speculative_config",
                            "kv_transfer_config", "enable_lora", "quantization"})
    EXPECT_FALSE(falls_back(refused(field))) << field;
  EXPECT_FALSE(falls_back(refused("device", ErrorCode::invalid_argument)));
}

}  // namespace
}  // namespace octavo
