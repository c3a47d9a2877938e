// Tests pairs of GGUF files: a language model and its mmproj file. The reference is the golden file of the
// same model's folder. tools/goldens/gguf_vision.py makes the pairs.
#include "engine/testing/image_rig.h"
#include "model/image_processor.h"

namespace octavo {
namespace {

using namespace image_rig;

constexpr std::string_view kPairsRoot = "tests/data/gguf_vision/", kRounded = "-q8_0";

class GgufImages : public testing::TestWithParam<std::string> {
 protected:
  static std::string folder_of(const std::string& pair) {
    return pair.ends_with(kRounded) ? pair.substr(0, pair.size() - kRounded.size()) : pair;
  }

  const Conversation conversation_{folder_of(GetParam())};
  const std::string model_ = fmt::format("{}{}/model.gguf", kPairsRoot, GetParam());
  const std::string mmproj_ = fmt::format("{}{}/mmproj.gguf", kPairsRoot, GetParam());
  // Some matrices of the encoder have rounded numbers.
  const bool rounded_ = GetParam().ends_with(kRounded);
};

TEST_P(GgufImages, RowsAreThoseOfTransformers) {
  Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  const auto model = Model::load(
      model_, backend, {.dtype = ModelDType::float32, .reading = {.mmproj = mmproj_}, .threads = 2});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto encoder = make_image_encoder(*(*model)->tower, backend);
  ASSERT_TRUE(encoder.has_value()) << encoder.error().message;
  for (const char* picture : {"rgb.png", "palette.png"}) {
    std::vector<float> rows;
    for (const MediaPart& part : conversation_.parts(picture)) {
      CHECK((*encoder)->begin(part).has_value());
      std::optional<Buffer> encoded;
      while (!encoded) encoded = (*encoder)->advance(1 << 20);
      const View view = (*encoder)->rows_of(*encoded);
      std::vector<float> own(static_cast<std::size_t>(view.elements()));
      backend.device->download(*backend.stream, own.data(), view);
      backend.stream->synchronize();
      rows.insert(rows.end(), own.begin(), own.end());
    }
    const float most = difference(rows, conversation_.golden.values<float>(fmt::format("rows.{}", picture)));
    fmt::print("max |row difference| {} {:<12} {:.1e}\n", GetParam(), picture, most);
    EXPECT_LE(most, rounded_ ? 1e-1F : 1e-4F);  // the largest numbers are about 3
  }
}

class GgufConversations : public GgufImages {};

TEST_P(GgufConversations, LogitsAreThoseOfTransformersInAnyChunks) {
  const std::vector<float> expected = log_softmax(conversation_.logits, conversation_.vocab);
  std::vector<float> whole;
  // Files of Gemma 4 lack the limit of tokens, so an image may have a few more of them than in the folder.
  for (const int step_tokens : {2048, conversation_.small_step() + 8}) {
    const auto engine = image_engine_of(model_, {.step_tokens = step_tokens, .mmproj = mmproj_});
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    const std::vector<float> here = logprobs(**engine, conversation_);
    EXPECT_LE(difference(here, expected), 1e-4F) << step_tokens;
    if (whole.empty()) whole = here;
    EXPECT_EQ(here, whole) << step_tokens;
    EXPECT_EQ(run(**engine, conversation_.request()).tokens, conversation_.answer) << step_tokens;
  }
}

TEST_P(GgufImages, PartsAndTextsAreThoseOfTheFolder) {
  const auto own = read_image_processor(model_, {}, mmproj_);
  ASSERT_TRUE(own.has_value()) << own.error().message;
  const media::ProcessorConfig folder = read_image_processor(conversation_.golden.directory).value();
  EXPECT_EQ(own->placeholder, folder.placeholder);
  EXPECT_EQ(own->token, folder.token);
  EXPECT_EQ(own->before + own->row_break + own->after, folder.before + folder.row_break + folder.after);
  for (std::size_t i = 0; i < 3 && !GetParam().starts_with("gemma4");
       ++i) {  // Gemma 4 has no mean in the file
    EXPECT_FLOAT_EQ(own->mean[i], folder.mean[i]);
    EXPECT_FLOAT_EQ(own->std[i], folder.std[i]);
  }
  // mmproj files of these models lack limits of an image's size, or the largest number of tiles.
  if (std::ranges::any_of(std::to_array({"llama4", "gemma4", "glm", "lfm2"}),
                          [](const char* name) { return GetParam().starts_with(name); }))
    return;
  const media::Image image = conversation_.golden.image("decoded.rgb.png");
  const auto parts_of = [&](const media::ProcessorConfig& config) {
    return media::cut_parts(image, media::part_grid(image.width, image.height, config).value(), config);
  };
  const std::vector<media::Image> parts = parts_of(*own), expected = parts_of(folder);
  ASSERT_EQ(parts.size(), expected.size());
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].pixels, expected[i].pixels) << i;
}

INSTANTIATE_TEST_SUITE_P(Pairs, GgufImages,
                         testing::Values("gemma3", "gemma4", "gemma4-whole", "glm4v", "glm4v_moe", "glm_ocr",
                                         "idefics3", "internvl", "lfm2_vl", "lighton_ocr", "llama4",
                                         "llama4-q8_0", "llava", "mistral3", "pixtral", "qwen2_5_vl",
                                         "qwen2_vl", "qwen3_vl", "qwen3_vl_moe"),
                         image_test_name);
// Without Llama 4: GGUF files lack the size of attention's chunks, which is 40 tokens in its folder.
INSTANTIATE_TEST_SUITE_P(Pairs, GgufConversations,
                         testing::Values("gemma3", "gemma4", "gemma4-whole", "glm4v", "glm4v_moe", "glm_ocr",
                                         "idefics3", "internvl", "lfm2_vl", "lighton_ocr", "llava",
                                         "mistral3", "pixtral", "qwen2_5_vl", "qwen2_vl", "qwen3_vl",
                                         "qwen3_vl_moe"),
                         image_test_name);

}  // namespace
}  // namespace octavo
