#include "model/image_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

using testing::HasSubstr;

media::ProcessorConfig processor_of(const std::string& model) {
  auto config = read_image_processor("tests/data/vision/" + model);
  CHECK(config.has_value(), "{}", config.error().message);
  return *std::move(config);
}

TEST(ImageProcessor, ModelTypesChangeTheTexts) {
  EXPECT_EQ(processor_of("qwen2_vl").token, "<|image_pad|>");
  EXPECT_EQ(processor_of("dots_ocr").token, "<|imgpad|>");
  EXPECT_EQ(processor_of("hyperclovax_vision").placeholder, "<|IMAGE_PAD|>");
  EXPECT_EQ(processor_of("pixtral").row_break, "[IMG_BREAK]");
  const media::ProcessorConfig lighton = processor_of("lighton_ocr");
  EXPECT_EQ(lighton.token, "<|image_pad|>");
  EXPECT_EQ(lighton.row_break + lighton.after, "");
}

TEST(ImageProcessor, NewestModelsKeepAboutTheSizeOfImages) {
  const auto rule_of = [](const char* model) {
    return std::get<media::AnySizeRule>(processor_of(model).rule);
  };
  for (const char* model : {"cosmos3_edge", "keye", "minimax_m3_vl", "bailing_v3_vl", "ovis2_5"}) {
    EXPECT_EQ(rule_of(model).unit, 12) << model;
    EXPECT_EQ(rule_of(model).pixels_max, 12 * 12 * 20) << model;
  }
  EXPECT_EQ(rule_of("cosmos3_edge").growth, media::AnySizeRule::Growth::both);
  const media::ProcessorConfig ovis = processor_of("ovis2_5"), ling = processor_of("bailing_v3_vl");
  EXPECT_EQ(ovis.placeholder + ovis.token, "<image><|image_pad|>");
  EXPECT_EQ(ling.placeholder, "<|vision_start|><|image_pad|><|vision_end|>");
  EXPECT_EQ(ling.after, "<|vision_end|>\n");
  EXPECT_EQ(processor_of("minimax_m3_vl").before, "]<]start of image[>[");
  const ScratchDirectory folder;
  folder.write("preprocessor_config.json",
               R"({"image_processor_type": "MiniMaxM3VLImageProcessor", "size": [672, 672]})");
  EXPECT_EQ(
      std::get<media::AnySizeRule>(read_image_processor(folder.path().string()).value().rule).pixels_max,
      672 * 672);
}

TEST(ImageProcessor, AnImageOfGlmCountsAsTwoFrames) {
  const auto rule = std::get<media::AnySizeRule>(processor_of("glm_ocr").rule);
  EXPECT_EQ(rule.weight, 2);
  EXPECT_EQ(rule.rounded_weight, 2);
  EXPECT_EQ(rule.growth, media::AnySizeRule::Growth::both);
}

TEST(ImageProcessor, Lfm2VlCutsLargeImages) {
  const auto rule = std::get<media::SplitTileRule>(processor_of("lfm2_vl").rule);
  EXPECT_EQ(rule.whole.unit, 12);
  EXPECT_EQ(rule.whole.pixels_min, 4 * 12 * 12);
  EXPECT_EQ(rule.whole.pixels_max, 30 * 12 * 12);
  EXPECT_EQ(rule.tiles.tile_size, 24);
  EXPECT_EQ(rule.tiles.tiles_max, 6);
  const ScratchDirectory folder;
  const auto error_with = [&](const std::string& field) {
    folder.write("preprocessor_config.json",
                 R"({"image_processor_type": "Lfm2VlImageProcessorFast", )" + field + "}");
    return read_image_processor(folder.path().string()).error().message;
  };
  EXPECT_THAT(error_with(R"("tile_size": 500)"), HasSubstr("tile_size is 500, but must be a multiple of"));
  EXPECT_THAT(error_with(R"("use_thumbnail": false)"), HasSubstr("use_thumbnail is false, but only true"));
}

TEST(ImageProcessor, ModelsLikeInternVLHaveTheirOwnTextsAndGrids) {
  const media::ProcessorConfig nvlm = processor_of("nvlm_d");
  EXPECT_EQ(nvlm.token, "<|vision_pad|>");
  EXPECT_EQ(nvlm.before + nvlm.after, "<Image></Image>");
  EXPECT_TRUE(std::get<media::RatioTileRule>(nvlm.rule).numbered);
  const media::ProcessorConfig llama = processor_of("llama_nemotron_vl");
  EXPECT_EQ(std::get<media::RatioTileRule>(llama.rule).choice, media::RatioTileRule::Choice::area);
  EXPECT_EQ(std::get<media::RatioTileRule>(llama.rule).tile_size, 24);
  EXPECT_EQ(llama.token, "<image>");
  EXPECT_FLOAT_EQ(llama.mean[0], 0.48145466F);
  const auto omni = std::get<media::PatchBudgetRule>(processor_of("nemotron_omni").rule);
  EXPECT_EQ(omni.patches_min, 20);
  EXPECT_EQ(omni.patches_max, 60);
  const ScratchDirectory folder;
  folder.write("config.json", R"({"model_type": "h2ovl_chat", "use_msac": true, "max_dynamic_patch": 6})");
  EXPECT_TRUE(
      std::get<media::RatioTileRule>(read_image_processor(folder.path().string()).value().rule).twice);
}

TEST(ImageProcessor, KimisLimitsHaveSeveralNames) {
  const auto rule = std::get<media::PaddedSizeRule>(processor_of("kimi_k25").rule);
  EXPECT_EQ(rule.unit, 12);
  EXPECT_EQ(rule.patches_max, 40);
  const ScratchDirectory folder;
  const auto limits = [&](const std::string& text) {
    folder.write("preprocessor_config.json", text);
    const auto read =
        std::get<media::PaddedSizeRule>(read_image_processor(folder.path().string()).value().rule);
    return std::array{read.unit, read.patches_max, read.side_max};
  };
  EXPECT_EQ(
      limits(
          R"({"image_processor_type": "KimiVLImageProcessor", "in_token_limit": 4096, "merge_kernel_size": [2, 2],
                       "patch_size": 14})"),
      (std::array{28, 4096, 512}));
  EXPECT_EQ(limits(R"({"media_proc_cfg": {"in_patch_limit": 100, "merge_kernel_size": 2, "patch_size": 14,
                       "patch_limit_on_one_side": 9}})"),
            (std::array{28, 100, 9}));
}

TEST(ImageProcessor, MistralsOwnFormatHasSettingsInItsParams) {
  const auto rule = std::get<media::LongestEdgeRule>(processor_of("pixtral_own").rule);
  EXPECT_EQ(rule.longest, 48);
  EXPECT_EQ(rule.unit, 12);
}

TEST(ImageProcessor, InternVLsFirstFormatHasSettingsInItsConfig) {
  const media::ProcessorConfig config = processor_of("internvl_chat");
  const auto rule = std::get<media::RatioTileRule>(config.rule);
  EXPECT_EQ(rule.tile_size, 32);
  EXPECT_EQ(rule.tiles_max, 4);
  EXPECT_EQ(config.placeholder, "<IMG_CONTEXT>");  // the template writes it
  EXPECT_EQ(config.token, "<IMG_CONTEXT>");
  EXPECT_FLOAT_EQ(config.mean[0], 0.485F);

  const ScratchDirectory folder;
  folder.write("config.json", R"({"architectures": ["InternVLChatModel"], "model_type": "internvl_chat"})");
  EXPECT_EQ(read_image_processor(folder.path().string())->placeholder, "<image>");
  const auto error_with = [&](const std::string& fields) {
    folder.write(
        "config.json",
        R"({"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", )" + fields + "}");
    return read_image_processor(folder.path().string()).error().message;
  };
  EXPECT_THAT(error_with(R"("use_thumbnail": false)"), HasSubstr("use_thumbnail is false, but only true"));
  EXPECT_THAT(error_with(R"("min_dynamic_patch": 3, "max_dynamic_patch": 2)"),
              HasSubstr("min_dynamic_patch is 3, but must be at most max_dynamic_patch 2"));
}

}  // namespace
}  // namespace octavo
