// Tests what is read from mmproj files, and their errors. Numbers are tested in engine/media.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/testing/scratch_directory.h"
#include "model/gguf_spec.h"
#include "model/image_processor.h"
#include "model/model.h"
#include "weights/testing/gguf.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kF32 = 0;
constexpr std::uint64_t kDim = 8, kWide = 12, kTextDim = 16;

std::string zeros(std::uint64_t count) { return std::string(count * 4, '\0'); }

class GgufEncoderTest : public testing::Test {
 protected:
  // A language model without layers' tensors. Only its metadata is read.
  static GgufBuilder text_model(const std::string& architecture, std::vector<std::string> tokens) {
    GgufBuilder file;
    file.text("general.architecture", architecture);
    for (const auto& [name, value] :
         {std::pair("embedding_length", static_cast<std::uint32_t>(kTextDim)), std::pair("block_count", 1u),
          std::pair("context_length", 4096u), std::pair("feed_forward_length", 32u),
          std::pair("attention.head_count", 2u)})
      file.u32(architecture + "." + name, value);
    file.f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
    std::string sections = GgufBuilder::raw(GgufType::u32) + GgufBuilder::raw(std::uint64_t{4});
    for (const std::uint32_t pairs : {2u, 1u, 1u, 0u}) sections += GgufBuilder::raw(pairs);
    file.value(architecture + ".rope.dimension_sections", GgufType::list, sections);
    while (tokens.size() < 10) tokens.push_back("w" + std::to_string(tokens.size()));
    file.texts("tokenizer.ggml.tokens", tokens);
    file.tensor("token_embd.weight", {kTextDim, 10}, kF32, zeros(kTextDim * 10));
    return file;
  }
  // LLaVA's encoder. `numbers` replace numbers under keys without "clip.vision."; `without` is a key to leave
  // out.
  static GgufBuilder encoder(const std::string& projector, std::map<std::string, std::uint32_t> numbers = {},
                             const std::string& without = "", std::uint64_t out = kTextDim) {
    GgufBuilder file;
    file.text("general.architecture", "clip").text("clip.projector_type", projector);
    file.value("clip.has_vision_encoder", GgufType::boolean, std::string(1, '\1'));
    numbers.insert({{"embedding_length", kDim},
                    {"block_count", 2},
                    {"attention.head_count", 2},
                    {"patch_size", 4},
                    {"image_size", 16}});
    for (const auto& [name, value] : numbers)
      if (name != without) file.u32("clip.vision." + name, value);
    file.f32("clip.vision.attention.layer_norm_epsilon", 1e-5F);
    for (const char* key : {"clip.vision.image_mean", "clip.vision.image_std"}) {
      std::string list = GgufBuilder::raw(GgufType::f32) + GgufBuilder::raw(std::uint64_t{3});
      for (int i = 0; i < 3; ++i) list += GgufBuilder::raw(0.5F);
      file.value(key, GgufType::list, list);
    }
    file.tensor("v.patch_embd.weight", {4, 4, 3, kDim}, kF32, zeros(48 * kDim));
    file.tensor("v.class_embd", {kDim}, kF32, zeros(kDim));
    file.tensor("v.blk.0.ln1.weight", {kDim}, kF32, zeros(kDim));
    file.tensor("v.blk.0.ffn_up.weight", {kWide, kDim}, kF32, zeros(kDim * kWide));
    file.tensor("v.blk.0.ffn_down.weight", {kDim, kWide}, kF32, zeros(kDim * kWide));
    file.tensor("mm.0.weight", {kDim, out}, kF32, zeros(kDim * out));
    file.tensor("mm.2.weight", {out, out}, kF32, zeros(out * out));
    return file;
  }
  Result<ModelSpec> spec(const GgufBuilder& model, const GgufBuilder& mmproj) {
    directory_.write("model.gguf", model.build());
    directory_.write("mmproj.gguf", mmproj.build());
    return load_spec(model_, {.mmproj = mmproj_});
  }
  std::string error(const GgufBuilder& model, const GgufBuilder& mmproj) {
    const auto made = spec(model, mmproj);
    return made ? "accepted" : made.error().message;
  }

  ScratchDirectory directory_;
  const std::string model_ = (directory_ / "model.gguf").string(),
                    mmproj_ = (directory_ / "mmproj.gguf").string();
  const GgufBuilder llama_ = text_model("llama", {"<unk>", "<image>"});
};

TEST_F(GgufEncoderTest, LlavaHasTheLayersThatTheProjectorReads) {
  const auto made = spec(llama_, encoder("mlp"));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->architecture, "LlavaForConditionalGeneration");
  EXPECT_EQ(made->media.token, 1);
  const ModelSpec& tower = *made->media.tower;
  EXPECT_EQ(tower.layers.size(), 2u);
  EXPECT_EQ(tower.dim, static_cast<int>(kDim));
  EXPECT_EQ(std::get<Mlp>(tower.layers[0].feed_forward).hidden, static_cast<int>(kWide));
  EXPECT_EQ(tower.names.mlp.up, std::vector<std::string>{"ffn_down"});  // older files exchange the names
  EXPECT_EQ(tower.inputs.image->out_dim, static_cast<int>(kTextDim));
  EXPECT_EQ(tower.inputs.image->image_size, 16);
}

TEST_F(GgufEncoderTest, AnotherTokenReplacesImagesIfTheVocabularyLacksTheirToken) {
  ASSERT_EQ(error(text_model("llama", {"a", "<unk>"}), encoder("mlp")), "accepted");
  const auto images = read_image_processor(model_, {}, mmproj_);
  ASSERT_TRUE(images.has_value()) << images.error().message;
  EXPECT_EQ(images->token, "<unk>");
  EXPECT_EQ(images->placeholder, "<image>");
  EXPECT_THAT(error(text_model("llama", {"a"}), encoder("mlp")),
              HasSubstr("lacks the special token <image>"));
}

TEST_F(GgufEncoderTest, QwensImagesHaveTheLimitsOfThePublishedModels) {
  const GgufBuilder qwen = text_model("qwen2vl", {"<|image_pad|>"});
  ASSERT_EQ(error(qwen, encoder("qwen2.5vl_merger", {{"n_wa_pattern", 8}})), "accepted");
  const auto rule = [&] {
    return std::get<media::AnySizeRule>(read_image_processor(model_, {}, mmproj_).value().rule);
  };
  EXPECT_EQ(rule().pixels_min, 56 * 56);
  EXPECT_EQ(rule().pixels_max, 28 * 28 * 16384);
  EXPECT_EQ(rule().unit, 8);
  const std::map<std::string, std::uint32_t> limits{
      {"n_wa_pattern", 8}, {"image_min_pixels", 64}, {"image_max_pixels", 640}};
  ASSERT_EQ(error(qwen, encoder("qwen2.5vl_merger", limits)), "accepted");
  EXPECT_EQ(rule().pixels_min, 64);
  EXPECT_EQ(rule().pixels_max, 640);
  const auto overridden = read_image_processor(model_, {{"max_pixels", 128}}, mmproj_);
  ASSERT_TRUE(overridden.has_value()) << overridden.error().message;
  EXPECT_EQ(std::get<media::AnySizeRule>(overridden->rule).pixels_max, 128);
}

TEST_F(GgufEncoderTest, VideosOfQwen3HaveOtherLimitsThanImages) {
  GgufBuilder mmproj = encoder("qwen3vl_merger");
  mmproj.tensor("v.position_embd.weight", {kDim, 16}, kF32, zeros(kDim * 16));
  const auto made = spec(text_model("qwen3vl", {"<|image_pad|>", "<|video_pad|>"}), mmproj);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->media.video_token, 1);
  const media::ProcessorConfig images = read_image_processor(model_, {}, mmproj_).value();
  EXPECT_EQ(std::get<media::AnySizeRule>(images.rule).pixels_max, 4096 * 4096);
  EXPECT_TRUE(images.video->stamped);
  EXPECT_EQ(images.video->size.pixels_min, 4096);
  EXPECT_EQ(images.video->size.pixels_max, 25165824);
}

TEST_F(GgufEncoderTest, ErrorsNameTheFileAndTheKey) {
  EXPECT_THAT(
      error(llama_, encoder("ldpv2")),
      HasSubstr("mmproj.gguf: clip.projector_type is \"ldpv2\", which is not supported: must be one of "
                "gemma3, gemma4v, glm4v, idefics3, internvl, lfm2, lightonocr, llama4, mlp, pixtral"));
  EXPECT_THAT(error(llama_, encoder("gemma3")), HasSubstr("must have the architecture gemma3"));
  EXPECT_THAT(error(llama_, encoder("mlp", {}, "", 24)),
              HasSubstr("makes rows of width 24, but " + model_ + " has the width 16"));
  EXPECT_THAT(error(llama_, encoder("mlp", {}, "patch_size")),
              HasSubstr("mmproj.gguf: clip.vision.patch_size is missing"));
  EXPECT_THAT(error(llama_, encoder("mlp", {{"block_count", 0}})),
              HasSubstr("clip.vision.block_count is 0, but must be an integer from 1 to 1024"));
  EXPECT_THAT(error(llama_, encoder("mlp", {{"image_size", 2}})), HasSubstr("must be at least patch_size"));
  EXPECT_THAT(error(llama_, llama_), HasSubstr("general.architecture is \"llama\", but must be clip"));
}

TEST_F(GgufEncoderTest, AnEncoderIsNotALanguageModel) {
  directory_.write("mmproj.gguf", encoder("mlp").build());
  const auto made = load_spec(mmproj_);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, HasSubstr("this file with --mmproj"));
}

}  // namespace
}  // namespace octavo
