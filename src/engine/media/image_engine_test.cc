// Tests engines of vision models on every backend, in chunks, alone and in batches.
#include "engine/testing/image_rig.h"
#include "model/cache_layout.h"

namespace octavo {
namespace {

using namespace image_rig;

Buffer encode(RowEncoder& encoder, const MediaPart& part) {
  for (int time = 0; time < 2; ++time) {
    CHECK(encoder.begin(part).has_value());
    if (time == 0) encoder.advance(1);
  }
  std::optional<Buffer> encoded;
  while (!encoded) encoded = encoder.advance(1);
  return *std::move(encoded);
}

// Returns the number of blocks that a sequence needs for 16 tokens, which is the number of cache groups; or 0
// if layers with windows or chunks free blocks. The index of MiniMax-M3's attention is a cache group.
int blocks_per_part(const std::string& directory) {
  const ModelSpec spec = load_spec(directory).value();
  const CacheLayout layout = cache_layout(spec, {.block_size = 16, .dtype = DType::f32});
  const bool frees =
      std::ranges::any_of(layout.groups, [](const LayerGroup& group) { return group.window > 0; });
  return frees ? 0 : static_cast<int>(layout.groups.size());
}

class ImageEngine : public testing::TestWithParam<std::string> {
 protected:
  const Conversation conversation_{GetParam()};
  const std::string& directory_ = conversation_.golden.directory;
};

TEST_P(ImageEngine, RowsAreThoseOfTransformers) {
  const auto check = [&](const std::string& name, Backend backend) {
    SCOPED_TRACE(name);
    const auto model = Model::load(directory_, backend, {.dtype = ModelDType::float32, .threads = 2});
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto encoder = make_image_encoder(*(*model)->tower, backend);
    ASSERT_TRUE(encoder.has_value()) << encoder.error().message;
    for (const char* picture : {"rgb.png", "palette.png"}) {
      std::vector<float> rows;
      for (const MediaPart& part : conversation_.parts(picture)) {
        const Buffer encoded = encode(**encoder, part);
        const View view = (*encoder)->rows_of(encoded);
        std::vector<float> own(static_cast<std::size_t>(view.elements()));
        backend.device->download(*backend.stream, own.data(), view);
        backend.stream->synchronize();
        rows.insert(rows.end(), own.begin(), own.end());
      }
      const float most =
          difference(rows, conversation_.golden.values<float>(fmt::format("rows.{}", picture)));
      fmt::print("max |row difference| {} {:<12} {:<12} {:.1e}\n", GetParam(), picture, name, most);
      EXPECT_LE(most, 1e-4F);
    }
  };
  std::size_t way = 0;
  check("reference", make_reference_backend());
  for (const CpuIsa isa : kCpuIsas)
    if (chosen(GetParam(), ++way, 3))
      if (auto cpu = make_cpu_backend({.threads = 2, .isa = isa}))
        check(fmt::format("cpu {}", name(isa)), *std::move(cpu));
  if (chosen(GetParam(), ++way, 3))
    if (auto cuda = make_cuda_backend()) check("cuda", *std::move(cuda));
}

// Uses slices of different sizes for one image, because steps of different lengths run between slices.
TEST_P(ImageEngine, RowsDoNotDependOnSlices) {
  Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  const auto model = Model::load(directory_, backend, {.dtype = ModelDType::float32, .threads = 2});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto encoder = make_image_encoder(*(*model)->tower, backend);
  ASSERT_TRUE(encoder.has_value()) << encoder.error().message;
  const auto rows_in = [&](const MediaPart& part, std::span<const int> slices) {
    CHECK((*encoder)->begin(part).has_value());
    std::optional<Buffer> encoded;
    for (std::size_t i = 0; !encoded; ++i) encoded = (*encoder)->advance(slices[i % slices.size()]);
    const View view = (*encoder)->rows_of(*encoded);
    std::vector<float> rows(static_cast<std::size_t>(view.elements()));
    backend.device->download(*backend.stream, rows.data(), view);
    backend.stream->synchronize();
    return rows;
  };
  for (const MediaPart& part : conversation_.parts("rgb.png")) {
    const std::vector<float> whole = rows_in(part, std::array{1 << 20});
    EXPECT_EQ(rows_in(part, std::array{1, 1 << 20}), whole);
    EXPECT_EQ(rows_in(part, std::array{5, 1, 9, 40, 1 << 20, 3}), whole);
  }
}

TEST_P(ImageEngine, LogitsAreThoseOfTransformersInAnyChunks) {
  const std::vector<float> expected = log_softmax(conversation_.logits, conversation_.vocab);
  std::vector<ImageTestOptions> backends{{.device = "reference"}};
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) backends.push_back({.isa = isa});
  for (ImageTestOptions options : backends) {
    SCOPED_TRACE(options.isa ? name(*options.isa) : "reference");
    std::vector<float> whole;
    for (const int step_tokens : {2048, conversation_.small_step()}) {
      options.step_tokens = step_tokens;
      const auto engine = image_engine_of(directory_, options);
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      const std::vector<float> here = logprobs(**engine, conversation_);
      EXPECT_LE(difference(here, expected), 1e-4F) << step_tokens;
      if (whole.empty()) whole = here;
      EXPECT_EQ(here, whole) << step_tokens;
      EXPECT_EQ(run(**engine, conversation_.request()).tokens, conversation_.answer) << step_tokens;
    }
  }
}

TEST_P(ImageEngine, Bf16IsAsGoodAsTransformers) {
  const auto engine = image_engine_of(directory_, {.dtype = "auto"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const std::vector<float> expected = log_softmax(conversation_.logits, conversation_.vocab);
  const std::vector<float> here = logprobs(**engine, conversation_);
  double ours = 0, theirs = 0;
  for (std::size_t i = 0; i < here.size(); ++i) ours += std::exp(expected[i]) * (expected[i] - here[i]);
  for (const float kl : std::span(conversation_.bf16_kl).first(conversation_.bf16_kl.size() - 1))
    theirs += kl;
  const auto positions = static_cast<double>(conversation_.bf16_kl.size() - 1);
  fmt::print("bf16 KL to f32 {} {:.1e}, transformers {:.1e}\n", GetParam(), ours / positions,
             theirs / positions);
  EXPECT_LE(ours, 1.5 * theirs);
}

// Several conversations run at the same time in small steps, with and without the prefix cache, and with
// preemptions.
TEST_P(ImageEngine, AnswersDoNotDependOnNeighbours) {
  const auto alone = image_engine_of(directory_, {.prefix_caching = false});
  ASSERT_TRUE(alone.has_value());
  Request other = conversation_.request();
  std::ranges::reverse(other.media.front().bytes);
  other.media.front().digest.low ^= 1;
  Request text = conversation_.request();
  text.media.clear();
  std::vector<Request> requests{conversation_.request(), other, text, conversation_.request()};
  // The sequences need more blocks than two prompts leave free.
  for (Request& request : requests) request.sampling.max_tokens = 40;
  const std::vector<CollectedAnswer> expected = answers_one_by_one(**alone, requests);
  const int parts = 2 * ((static_cast<int>(conversation_.prompt.size()) + 15) / 16) + 2;
  const int scarce = parts * blocks_per_part(directory_);
  std::vector<int> rooms{256};
  if (scarce > 0) rooms.push_back(scarce);
  for (const int blocks : rooms) {
    const auto engine = image_engine_of(
        directory_, {.step_tokens = std::max(29, conversation_.small_step()), .blocks = blocks});
    expect_answers(**engine, requests, expected, blocks == scarce);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, ImageEngine,
    testing::Values("idefics3", "smolvlm", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl",
                    "qwen3_5_moe_vl", "internvl", "gemma3", "gemma4", "gemma4-whole", "llava", "llava_next",
                    "llava_onevision", "phi4_multimodal", "phi4_mm", "mistral3", "pixtral", "glm4v",
                    "glm4v_moe", "glm_ocr", "paddleocr_vl", "exaone4_5", "hyperclovax_vision", "dots_ocr",
                    "lighton_ocr", "llava_next_video", "internvl_chat", "qianfan_ocr", "cohere2_vision",
                    "opencua", "qwen2_5_omni", "qwen3_omni", "cosmos3", "paligemma", "paligemma2", "lfm2_vl",
                    "phi4_reasoning_vision", "llava_onevision-r4b", "llava_onevision-bee", "kimi_k25",
                    "kimi_vl", "nemotron_omni", "nemotron_nano_vl", "llama_nemotron_vl", "nvlm_d", "eagle2_5",
                    "alpamayo2", "pixtral_own", "llama4", "phi3_vision", "cosmos3_edge", "minimax_m3_vl",
                    "bailing_v3_vl", "ovis2_5", "keye", "keye1_5"),
    image_test_name);

}  // namespace
}  // namespace octavo
