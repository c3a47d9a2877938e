// Compares GGUF files of every architecture and of many formats with transformers, which reads the same
// numbers. tools/goldens/make_gguf_goldens.py makes the data in tests/data/gguf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

using golden::Golden;

constexpr const char* kRoot = "tests/data/gguf";

std::string file_of(const Golden& golden) {
  const std::string split = golden.directory + "/model-00001-of-00002.gguf";
  return std::filesystem::exists(split) ? split : golden.directory + "/model.gguf";
}

std::vector<float> logits_of(const Golden& golden, Backend& backend, ModelDType dtype,
                             const std::vector<int>& chunks, bool late = false) {
  const auto model =
      Model::load(file_of(golden), backend,
                  {.dtype = dtype, .max_model_len = golden.max_model_len, .threads = 2, .late = late});
  EXPECT_TRUE(model.has_value()) << model.error().message;
  if (!model) return {};
  auto logits = golden::run(**model, backend, golden.ids, chunks, {.dtype = (*model)->activation});
  return logits.value_or(std::vector<float>{});
}

class GgufGolden : public testing::TestWithParam<std::string> {};

TEST_P(GgufGolden, ReferenceComputesWithTheNumbersOfTheFile) {
  const Golden golden = golden::read(GetParam(), kRoot);
  Backend backend = make_reference_backend();
  const auto logits = logits_of(golden, backend, ModelDType::float32, {static_cast<int>(golden.ids.size())});
  ASSERT_EQ(logits.size(), golden.logits.size());
  const float difference = golden::max_difference(logits, golden.logits);
  fmt::print("max |logit difference| {:<16} {:.1e}\n", golden.name, difference);
  EXPECT_LE(difference, 5e-5F);
}

// The kernels round activations to 8 bits before they multiply them by blocks. The tolerance is the error of
// this rounding.
TEST_P(GgufGolden, CpuIsNearAndNeitherChunksNorLateConversionMatter) {
  const Golden golden = golden::read(GetParam(), kRoot);
  for (const CpuIsa isa : kCpuIsas) {
    auto backend = make_cpu_backend({.threads = 2, .isa = isa});
    if (!backend) continue;
    const auto logits =
        logits_of(golden, *backend, ModelDType::automatic, {static_cast<int>(golden.ids.size())});
    ASSERT_EQ(logits.size(), golden.logits.size());
    const double kl = golden::mean_kl(golden.logits, logits, std::ssize(logits) / std::ssize(golden.ids));
    fmt::print("KL {:<16} {:<14} {:.1e}\n", golden.name, name(isa), kl);
    EXPECT_LE(kl, 5e-3);
    EXPECT_EQ(logits, logits_of(golden, *backend, ModelDType::automatic, {1, 7}, true));
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Files, GgufGolden, testing::ValuesIn(golden::names(kRoot)), test_name);

TEST(GgufGoldenData, IsThere) { EXPECT_GE(golden::names(kRoot).size(), 17u); }

}  // namespace
}  // namespace octavo
