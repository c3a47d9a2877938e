#include "model/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Convert : public testing::Test {
 protected:
  std::string error(const std::string& from, const ConvertOptions& options) {
    const auto done = convert(from, out_, options);
    return done ? "converted" : done.error().message;
  }

  static std::vector<float> logits(const std::string& directory, Backend& backend, Encoding quantization) {
    const auto model =
        Model::load(directory, backend, {.quantization = quantization, .max_model_len = 64, .threads = 2});
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
    if (!model) return {};
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 30; ++i) ids.push_back((7 * i + 3) % (*model)->spec.vocab);
    return golden::run(**model, backend, ids, {30}, {.dtype = (*model)->activation})
        .value_or(std::vector<float>{});
  }

  void expect_same_bits(const std::string& from, Encoding quantization) {
    SCOPED_TRACE(fmt::format("{} {}", from, name(quantization)));
    fs::remove_all(out_);
    const auto done = convert(from, out_, {.quantization = quantization, .threads = 2});
    ASSERT_TRUE(done.has_value()) << done.error().message;
    EXPECT_GT(done->parameters, 0);
    EXPECT_LT(done->bytes, done->bytes_before);
    auto backend = make_cpu_backend({.threads = 2, .isa = {}});
    ASSERT_TRUE(backend.has_value());
    const auto made_while_loading = logits(from, *backend, quantization);
    ASSERT_FALSE(made_while_loading.empty());
    EXPECT_EQ(made_while_loading, logits(out_, *backend, Encoding::plain));
  }

  ScratchDirectory directory_;
  const fs::path out_ = directory_ / "out";
};

TEST_F(Convert, LoadsAgainWithTheSameBits) {
  expect_same_bits("models/demo", Encoding::int8);
  expect_same_bits("models/demo", Encoding::int4);
  // The widths of this model are not multiples of 128.
  expect_same_bits(fmt::format("{}/llama", golden::kModels), Encoding::int4);
  // Models with fused matrices, reordered rows, biases, or an untied output matrix.
  for (const char* family : {"llama", "phi3", "gpt_neox", "qwen2", "gemma2"})
    expect_same_bits(fmt::format("{}/{}", golden::kModels, family), Encoding::int8);
}

TEST_F(Convert, KeepsEmbeddingAndOtherFiles) {
  ASSERT_EQ(error("models/demo", {.quantization = Encoding::int4, .keep_embedding = true}), "converted");
  const auto checkpoint = open_checkpoint(out_);
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->find("model.embed_tokens.weight")->plain());
  EXPECT_EQ(checkpoint->find("model.layers.0.mlp.up_proj.weight")->encoding, Encoding::int4);
  EXPECT_TRUE(fs::exists(out_ / "tokenizer.json"));
  EXPECT_TRUE(fs::exists(out_ / "generation_config.json"));
}

TEST_F(Convert, RefusesWhatItCannotDo) {
  EXPECT_THAT(error("tests/data/models/gpt2", {}), HasSubstr("is stored transposed"));
  EXPECT_THAT(error("tests/data/models/llama-f16", {}), HasSubstr("multiple of 32 columns"));
  EXPECT_THAT(error("tests/data/quantized/awq-4bit", {}), HasSubstr("is already quantised"));
  EXPECT_THAT(error("tests/data/models", {}), HasSubstr("config.json"));
  directory_.write("out/file", "x");
  EXPECT_THAT(error("tests/data/models/llama", {}), HasSubstr("is not empty"));
}

}  // namespace
}  // namespace octavo
