// Compares checkpoints in Hugging Face's quantised formats with transformers, which uses the dequantised
// numbers. tools/goldens/make_quantized_goldens.py makes the data in tests/data/quantized.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

using golden::Golden;

class QuantizedGolden : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Model> load(Backend& backend, ModelDType dtype, Encoding quantization = Encoding::plain) {
    auto model =
        Model::load(golden_.directory, backend, {.dtype = dtype, .quantization = quantization, .threads = 2});
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
    return model ? std::move(*model) : nullptr;
  }

  std::vector<float> logits_of(const Model& model, Backend& backend, const std::vector<int>& chunks) {
    return golden::run(model, backend, golden_.ids, chunks, {.dtype = model.activation})
        .value_or(std::vector<float>{});
  }

  Golden golden_ = golden::read(GetParam(), golden::kQuantized);
};

TEST_P(QuantizedGolden, NumbersAreThoseOfTheFormat) {
  Backend backend = make_reference_backend();
  const auto model = load(backend, ModelDType::float32);
  ASSERT_NE(model, nullptr);
  const auto logits = logits_of(*model, backend, {5});
  EXPECT_LE(golden::max_difference(logits, golden_.logits), 1e-4f);
}

// The CPU kernels also round activations to int8 and, with ModelDType::automatic, to the format of the
// checkpoint.
TEST_P(QuantizedGolden, CpuIsClose) {
  for (const CpuIsa isa : kCpuIsas) {
    auto backend = make_cpu_backend({.threads = 2, .isa = isa});
    if (!backend) continue;
    for (const ModelDType dtype : {ModelDType::float32, ModelDType::automatic}) {
      SCOPED_TRACE(fmt::format("{} {}", name(isa), dtype == ModelDType::float32 ? "float32" : "auto"));
      const auto model = load(*backend, dtype);
      ASSERT_NE(model, nullptr);
      const auto logits = logits_of(*model, *backend, {static_cast<int>(golden_.ids.size())});
      const double kl = golden::mean_kl(golden_.logits, logits, model->spec.vocab);
      fmt::print("KL {:<24} {:<14} {:.1e}\n", golden_.name, name(isa), kl);
      EXPECT_LE(kl, 5e-3);
      EXPECT_EQ(logits, logits_of(*model, *backend, {1, 7}));
    }
  }
}

// In f32, weights are exactly those of the format. In 16 bits, they are rounded.
TEST_P(QuantizedGolden, CudaIsClose) {
  auto backend = make_cuda_backend();
  if (!backend) GTEST_SKIP() << backend.error().message;
  const auto supported = check_support(golden_.directory, {}, *backend);
  if (!supported) GTEST_SKIP() << supported.error().message;
  const auto exact = load(*backend, ModelDType::float32);
  ASSERT_NE(exact, nullptr);
  const std::vector<int> whole{static_cast<int>(golden_.ids.size())};
  EXPECT_LE(golden::max_difference(logits_of(*exact, *backend, whole), golden_.logits), 1e-4f);
  const auto model = load(*backend, ModelDType::automatic);
  ASSERT_NE(model, nullptr);
  const auto logits = logits_of(*model, *backend, whole);
  const double kl = golden::mean_kl(golden_.logits, logits, model->spec.vocab);
  fmt::print("KL {:<24} {:<14} {:.1e}\n", golden_.name, "cuda", kl);
  EXPECT_LE(kl, 5e-3);
  EXPECT_EQ(logits, logits_of(*model, *backend, {1, 7}));
}

TEST_P(QuantizedGolden, WhatIsPlainBesideThemCanBeQuantised) {
  auto backend = make_cpu_backend({.threads = 2, .isa = {}});
  ASSERT_TRUE(backend.has_value());
  const auto as_is = load(*backend, ModelDType::automatic);
  const auto model = load(*backend, ModelDType::automatic, Encoding::int8);
  ASSERT_TRUE(as_is != nullptr && model != nullptr);
  const auto table_bytes = [](const Model& m) { return m.network.ends->embedding.weight->bytes(); };
  EXPECT_LT(table_bytes(*model), table_bytes(*as_is));
  EXPECT_LE(model->weight_bytes - table_bytes(*model), as_is->weight_bytes - table_bytes(*as_is));
  const auto logits = logits_of(*model, *backend, {static_cast<int>(golden_.ids.size())});
  EXPECT_LE(golden::mean_kl(golden_.logits, logits, model->spec.vocab), 1e-2);
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string text = param.param;
  std::ranges::replace(text, '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantizedGolden, testing::ValuesIn(golden::names(golden::kQuantized)),
                         test_name);

// Compares fp8 checkpoints with transformers, whose products have activations that are rounded to fp8.
class RoundedGolden : public testing::TestWithParam<std::string> {
 protected:
  std::vector<float> logits_of(Backend& backend, const LoadOptions& options, const std::vector<int>& chunks) {
    auto model = Model::load(golden_.directory, backend, options);
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
    if (!model) return {};
    return golden::run(**model, backend, golden_.ids, chunks, {.dtype = (*model)->activation})
        .value_or(std::vector<float>{});
  }
  double kl(const std::vector<float>& logits) const {
    return golden::mean_kl(golden_.logits, logits, std::ssize(golden_.logits) / std::ssize(golden_.ids));
  }

  Golden golden_ = golden::read(GetParam(), golden::kRounded);
  const std::vector<int> whole_{static_cast<int>(golden_.ids.size())};
  const LoadOptions exact_{.dtype = ModelDType::float32, .fp8_activations = true};
};

TEST_P(RoundedGolden, NumbersAreThoseOfTransformers) {
  Backend backend = make_reference_backend();
  const float rounded = golden::max_difference(logits_of(backend, exact_, {5}), golden_.logits);
  EXPECT_LE(rounded, 1e-4f);
  const auto unrounded = logits_of(backend, {.dtype = ModelDType::float32}, {5});
  EXPECT_GT(golden::max_difference(unrounded, golden_.logits), 100 * rounded);
  EXPECT_LE(kl(unrounded), 1e-2);
}

// In f32, both round nearly the same numbers. In 16 bits, activations differ before they are rounded.
TEST_P(RoundedGolden, CudaIsClose) {
  auto backend = make_cuda_backend();
  if (!backend) GTEST_SKIP() << backend.error().message;
  EXPECT_LE(kl(logits_of(*backend, exact_, whole_)), 1e-4);
  const LoadOptions automatic{.fp8_activations = true};
  const auto logits = logits_of(*backend, automatic, whole_);
  fmt::print("KL {:<24} {:<14} {:.1e}\n", golden_.name, "cuda", kl(logits));
  EXPECT_LE(kl(logits), 5e-3);
  EXPECT_EQ(logits, logits_of(*backend, automatic, {1, 7}));
}

TEST_P(RoundedGolden, TheCpuRefuses) {
  auto backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const auto model = Model::load(golden_.directory, backend, exact_);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().message,
            "device cpu does not round activations to fp8: leave --fp8-activations out");
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundedGolden, testing::ValuesIn(golden::names(golden::kRounded)),
                         test_name);

TEST(RoundedActivations, NeedAnFp8Checkpoint) {
  Backend backend = make_reference_backend();
  const auto model = Model::load("tests/data/quantized/awq-4bit", backend, {.fp8_activations = true});
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message.find("no fp8 matrix"), std::string::npos) << model.error().message;
}

TEST(QuantizationMethod, IsWhatTheCheckpointSays) {
  EXPECT_EQ(quantization_method("tests/data/quantized/awq-4bit").value(), "awq");
  EXPECT_EQ(quantization_method("tests/data/quantized/w8a8").value(), "compressed-tensors");
  EXPECT_EQ(quantization_method("tests/data/gguf/llama-q8_0/model.gguf").value(), "gguf");
  EXPECT_EQ(quantization_method("tests/data/models/llama").value(), "none");
}

TEST(QuantizedGoldenData, IsThere) {
  EXPECT_GE(golden::names(golden::kQuantized).size(), 12u);
  EXPECT_GE(golden::names(golden::kRounded).size(), 3u);
}

}  // namespace
}  // namespace octavo
