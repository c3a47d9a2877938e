// Tests engines with videos on every backend, in chunks, with the prefix cache, and compares the results
// with transformers. tools/goldens/make_video_goldens.py creates video.safetensors in tests/data/vision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/load/load.h"
#include "engine/media/image_encoder.h"
#include "engine/testing/logprobs.h"
#include "kernels/backends.h"
#include "media/testing/golden.h"

namespace octavo {
namespace {

using media::VisionGolden;
using testing::HasSubstr;

constexpr TokenId kImageToken = 259, kVideoToken = 261;
constexpr int kUnit = 12;
constexpr float kStep = 4 * 2 / 5.5F;  // step on the time axis of Qwen2.5-VL

class VideoEngine : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const media::Image& picture : pictures_.tiles("tiles.rgb.png")) add(picture, kImageToken);
    const std::vector<media::Image> frames = golden_.tiles("frames.video");
    for (std::size_t i = 0; i < frames.size(); i += 2) {
      media::Image both = frames[i];
      if (i + 1 < frames.size())
        both.pixels.insert(both.pixels.end(), frames[i + 1].pixels.begin(), frames[i + 1].pixels.end());
      add(both, kVideoToken);
      MediaPart& part = parts_.back();
      part.frames = i + 1 < frames.size() ? 2 : 1;
      if (GetParam().starts_with("qwen3")) continue;
      part.continues = i > 0;
      part.time = GetParam() == "qwen2_vl" ? static_cast<int>(i / 2)
                                           : static_cast<int>(static_cast<float>(i / 2) * kStep);
    }
  }

  void add(const media::Image& picture, TokenId token) {
    while (prompt_[static_cast<std::size_t>(position_)] != token) ++position_;
    MediaPart part{.first = position_,
                   .bytes = {picture.pixels.begin(), picture.pixels.end()},
                   .columns = picture.width / kUnit};
    part.tokens = part.columns * (picture.height / kUnit);
    part.digest = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.bytes)), 0);
    position_ += part.tokens;
    parts_.push_back(std::move(part));
  }

  Request request() const {
    Request request;
    request.prompt = prompt_;
    request.media = parts_;
    request.sampling.max_tokens = static_cast<int>(answer_.size());
    request.sampling.ignore_eos = true;
    request.sampling.temperature = 0;
    return request;
  }

  Result<std::unique_ptr<Engine>> engine(int step_tokens, std::optional<CpuIsa> isa) const {
    EngineOptions options;
    options.model.dir = golden_.directory;
    options.device.type = isa ? "cpu" : "reference";
    options.model.dtype = "float32";
    options.device.threads = 2;
    options.schedule.max_num_batched_tokens = step_tokens;
    options.schedule.max_num_seqs = 8;
    options.logprobs.max = -1;
    options.cache.num_blocks = 256;
    const auto dress = [&](Backend) { return make_cpu_backend({.threads = 2, .isa = isa}).value(); };
    return isa ? load_engine(options, {.dress = dress}) : load_engine(options);
  }

  const VisionGolden pictures_{GetParam()}, golden_{GetParam(), media::kVisionRoot, media::kVideoFile};
  const std::vector<TokenId> prompt_ = golden_.values<TokenId>("ids"),
                             answer_ = golden_.values<TokenId>("answer");
  int position_ = 0;
  std::vector<MediaPart> parts_;
};

TEST_P(VideoEngine, RowsAreThoseOfTransformers) {
  Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  const auto model = Model::load(golden_.directory, backend, {.dtype = ModelDType::float32, .threads = 2});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto encoder = ImageEncoder::create(*(*model)->tower, backend);
  ASSERT_TRUE(encoder.has_value());
  std::vector<float> rows;
  for (const MediaPart& part : parts_) {
    if (part.frames == 0) continue;
    ASSERT_TRUE((*encoder)->begin(part).has_value());
    std::optional<Buffer> encoded;
    while (!encoded) encoded = (*encoder)->advance(7);
    const View view = (*encoder)->rows_of(*encoded);
    std::vector<float> own(static_cast<std::size_t>(view.elements()));
    backend.device->download(*backend.stream, own.data(), view);
    backend.stream->synchronize();
    rows.insert(rows.end(), own.begin(), own.end());
  }
  const float most = difference(rows, golden_.values<float>("rows.video"));
  fmt::print("max |row difference| {} {:.1e}\n", GetParam(), most);
  EXPECT_LE(most, 1e-4F);
}

TEST_P(VideoEngine, LogitsAreThoseOfTransformersInAnyChunks) {
  const std::vector<float> logits = golden_.values<float>("logits");
  const std::size_t rows = 60, vocab = logits.size() / rows;
  const std::vector<float> expected = log_softmax(logits, vocab);
  std::vector<std::optional<CpuIsa>> backends{std::nullopt};
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) backends.emplace_back(isa);
  for (const std::optional<CpuIsa> isa : backends) {
    SCOPED_TRACE(isa ? name(*isa) : "reference");
    std::vector<float> whole;
    for (const int step_tokens : {2048, 13}) {
      const auto engine = this->engine(step_tokens, isa);
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      const std::vector<float> here = last_logprobs(**engine, request(), rows - 1, vocab);
      EXPECT_LE(difference(here, expected), 1e-4F) << step_tokens;
      if (whole.empty()) whole = here;
      EXPECT_EQ(here, whole) << step_tokens;
      // The second run uses the prefix cache.
      EXPECT_EQ(run(**engine, request()).tokens, answer_) << step_tokens;
    }
  }
}

// The same frames with another frame rate have a different prefix.
TEST_P(VideoEngine, PrefixesAreSharedAtTheSamePaceAlone) {
  const auto engine = this->engine(2048, kCpuIsas[0]);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto cached = [&](const Request& request) { return run(**engine, request).ends.at(0).cached_tokens; };
  EXPECT_EQ(cached(request()), 0);
  const int all = cached(request());
  Request slower = request();
  slower.media.back().time += 5;
  EXPECT_EQ(cached(slower), std::min(all, slower.media.back().first / 16 * 16));
}

TEST_P(VideoEngine, PartsThatDoNotFitAreRefused) {
  const auto engine = this->engine(2048, kCpuIsas[0]);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto error = [&](auto change) {
    Request request = this->request();
    change(request.media);
    const auto id = (*engine)->submit(std::move(request), std::make_shared<Recorder>());
    return id ? std::string() : id.error().message;
  };
  EXPECT_THAT(error([](auto& parts) { parts[1].frames = 3; }), HasSubstr("a part of a video has 3 frames"));
  EXPECT_THAT(error([](auto& parts) { parts[1].time = -1; }), HasSubstr("from time -1"));
  EXPECT_THAT(error([](auto& parts) { parts[1].continues = true; }),
              HasSubstr("a part of a video"));  // the image would have to be split
  EXPECT_THAT(error([](auto& parts) { parts[1].frames = 1; }), HasSubstr("bytes of pixels"));
}

INSTANTIATE_TEST_SUITE_P(Families, VideoEngine,
                         testing::Values("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace octavo
