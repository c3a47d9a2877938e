// Tests engines with sounds in prompts on every backend, in chunks, alone and in batches, and compares the
// results with transformers. tools/goldens/make_sound_goldens.py creates the data in tests/data/sound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/load/load.h"
#include "engine/media/sound_rows.h"
#include "engine/testing/logprobs.h"
#include "kernels/backends.h"
#include "media/testing/golden.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr std::size_t kSoundVocab = 272;
constexpr int kRows = 100;

struct SoundCase {
  const char* name;
  TokenId token;                   // placeholder token of sounds
  int joined;
  std::vector<std::string> parts;  // parts of the golden conversation
  bool whole = false;              // whether a window is encoded as a whole
  bool trimmed = false;            // whether the prompt has no tokens for silence
  std::string model() const { return std::string(media::kSoundRoot) + name; }
};

class PromptSound : public testing::TestWithParam<SoundCase> {
 protected:
  const media::VisionGolden& golden() const { return golden_; }

  std::vector<MediaPart> sounds() const {
    const SoundCase& of = GetParam();
    const auto ids = golden().values<TokenId>("ids");
    std::vector<MediaPart> parts;
    int position = 0;
    for (const std::string& name : of.parts) {
      while (ids[static_cast<std::size_t>(position)] != of.token) ++position;
      const auto mel = golden().values<float>("mel." + name);
      const auto bytes = std::as_bytes(std::span(mel));
      const auto seen = [&] { return (golden().values<std::int32_t>("frames")[parts.size()] + 1) / 2; };
      const int rows = of.whole && !of.trimmed ? kRows : seen();
      parts.push_back({.digest = hash_bytes(HashAlgorithm::sha256, bytes, 0),
                       .first = position,
                       .tokens = rows / of.joined,
                       .bytes = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                       .columns = of.whole ? kRows : rows});
      position += rows / of.joined;
    }
    return parts;
  }

  Request conversation() const {
    Request request;
    request.prompt = golden().values<TokenId>("ids");
    request.media = sounds();
    request.sampling.max_tokens = static_cast<int>(golden().values<TokenId>("answer").size());
    request.sampling.ignore_eos = true;
    request.sampling.temperature = 0;
    return request;
  }

  struct TestOptions {
    std::string device = "cpu";
    std::optional<CpuIsa> isa = {};
    int step_tokens = 2048;
    bool prefix_caching = true;
  };

  static std::unique_ptr<Engine> engine_of(const TestOptions& test) {
    EngineOptions options;
    options.model.dir = GetParam().model();
    options.device.type = test.device;
    options.model.dtype = "float32";
    options.device.threads = 2;
    options.schedule.max_num_batched_tokens = test.step_tokens;
    options.schedule.max_num_seqs = 8;
    options.logprobs.max = -1;
    options.cache.enable_prefix_caching = test.prefix_caching;
    options.cache.num_blocks = 256;
    const auto dress = [&](Backend) { return make_cpu_backend({.threads = 2, .isa = test.isa}).value(); };
    auto engine = test.isa ? load_engine(options, {.dress = dress}) : load_engine(options);
    CHECK(engine.has_value(), "{}", engine.error().message);
    return *std::move(engine);
  }

 private:
  const media::VisionGolden golden_{GetParam().name, media::kSoundRoot};
};

INSTANTIATE_TEST_SUITE_P(
    Families, PromptSound,
    testing::Values(SoundCase{"qwen2_audio", 259, 2, {"chirp.wav", "short.wav"}},
                    SoundCase{"audioflamingo3", 259, 2, {"chirp.wav", "short.wav"}},
                    SoundCase{"voxtral", 260, 4, {"long.wav.0", "long.wav.1", "short.wav.0"}, true},
                    SoundCase{"glmasr", 259, 4, {"long.wav.0", "long.wav.1", "short.wav.0"}, true, true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(PromptSound, RowsAreThoseOfTransformers) {
  const auto check = [&](const std::string& name, Backend backend) {
    SCOPED_TRACE(name);
    const auto model = Model::load(GetParam().model(), backend, {.dtype = ModelDType::float32, .threads = 2});
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto encoder = SoundRows::create(*(*model)->tower, backend);
    ASSERT_TRUE(encoder.has_value()) << encoder.error().message;
    const std::vector<MediaPart> parts = sounds();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // the next begin() cancels this part
      ASSERT_TRUE((*encoder)->begin(parts[parts.size() - 1 - i]).has_value());
      (*encoder)->advance(1);
      ASSERT_TRUE((*encoder)->begin(parts[i]).has_value());
      std::optional<Buffer> encoded;
      while (!encoded) encoded = (*encoder)->advance(1);
      const View view = (*encoder)->rows_of(*encoded);
      std::vector<float> rows(static_cast<std::size_t>(view.elements()));
      backend.device->download(*backend.stream, rows.data(), view);
      backend.stream->synchronize();
      EXPECT_LE(difference(rows, golden().values<float>("rows." + GetParam().parts[i])), 1e-4F);
    }
  };
  check("reference", make_reference_backend());
  for (const CpuIsa isa : kCpuIsas)
    if (auto cpu = make_cpu_backend({.threads = 2, .isa = isa}))
      check(std::string(name(isa)), *std::move(cpu));
  if (auto cuda = make_cuda_backend()) check("cuda", *std::move(cuda));
}

TEST_P(PromptSound, LogitsAreThoseOfTransformersInAnyChunks) {
  const auto logits = golden().values<float>("logits");
  const std::vector<float> expected = log_softmax(logits, kSoundVocab);
  std::vector<TestOptions> backends{{.device = "reference"}};
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) backends.push_back({.isa = isa});
  if (make_cuda_backend()) backends.push_back({.device = "cuda"});
  for (TestOptions options : backends) {
    SCOPED_TRACE(options.isa ? std::string(name(*options.isa)) : options.device);
    std::vector<float> whole;
    for (const int step_tokens : {2048, 13}) {
      options.step_tokens = step_tokens;
      const auto engine = engine_of(options);
      const std::vector<float> here =
          last_logprobs(*engine, conversation(), logits.size() / kSoundVocab - 1, kSoundVocab);
      EXPECT_LE(difference(here, expected), 1e-4F) << step_tokens;
      if (whole.empty()) whole = here;
      EXPECT_EQ(here, whole) << step_tokens;
      EXPECT_EQ(run(*engine, conversation()).tokens, golden().values<TokenId>("answer")) << step_tokens;
    }
  }
}

TEST_P(PromptSound, AnswersDoNotDependOnNeighbours) {
  Request other = conversation();
  std::vector<float> mel = golden().values<float>("mel." + GetParam().parts[0]);
  std::ranges::reverse(mel);
  std::memcpy(other.media[0].bytes.data(), mel.data(), other.media[0].bytes.size());
  other.media[0].digest.low ^= 1;
  Request text = conversation();
  text.media.clear();
  const std::vector<Request> requests{conversation(), other, text, conversation()};
  const auto alone = engine_of({.prefix_caching = false});
  std::vector<std::vector<TokenId>> expected;
  for (const Request& request : requests) expected.push_back(run(*alone, request).tokens);
  EXPECT_NE(expected[0], expected[1]);
  const auto engine = engine_of({.step_tokens = 29});
  for (int round = 0; round < 2; ++round) {
    std::vector<std::shared_ptr<Recorder>> recorders;
    for (const Request& request : requests) {
      recorders.push_back(std::make_shared<Recorder>());
      ASSERT_TRUE(engine->submit(request, recorders.back()).has_value());
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      recorders[i]->wait_ended(1);
      EXPECT_EQ(recorders[i]->record().tokens, expected[i]) << i;
    }
  }
}

// Requests with different sounds share only the blocks before the sound. Requests with the same sound share
// all full blocks.
TEST_P(PromptSound, PrefixesAreSharedByEqualSoundsAlone) {
  const auto engine = engine_of({});
  const auto cached = [&](const Request& request) { return run(*engine, request).ends.at(0).cached_tokens; };
  EXPECT_EQ(cached(conversation()), 0);
  EXPECT_EQ(cached(conversation()), (std::ssize(conversation().prompt) - 1) / 16 * 16);
  Request other = conversation();
  other.media.back().digest.low ^= 1;
  EXPECT_EQ(cached(other), other.media.back().first / 16 * 16);
}

TEST_P(PromptSound, WhatDoesNotFitIsRefused) {
  const auto engine = engine_of({});
  const auto error = [&](auto change) {
    Request request = conversation();
    change(request.media[0]);
    const auto id = engine->submit(std::move(request), std::make_shared<Recorder>());
    return id ? std::string() : id.error().message;
  };
  const int tokens = kRows / GetParam().joined;
  EXPECT_THAT(error([](MediaPart& sound) { sound.tokens = 0; }),
              HasSubstr(fmt::format("must have 1 to {} tokens, got 0", tokens)));
  if (GetParam().whole) {
    if (!GetParam().trimmed) {
      EXPECT_THAT(error([](MediaPart& sound) { sound.tokens = 24; }),
                  HasSubstr("must have 25 tokens, got 24"));
    }
    EXPECT_THAT(error([](MediaPart& sound) { sound.columns = 67; }),
                HasSubstr("of 25 tokens cannot have 67 rows"));
  } else {
    EXPECT_THAT(error([](MediaPart& sound) { sound.columns = 67; }),
                HasSubstr("of 32 tokens cannot have 67 rows"));
  }
  EXPECT_THAT(error([](MediaPart& sound) { sound.bytes.pop_back(); }), HasSubstr("must have 64000 bytes"));
  EXPECT_THAT(error([](MediaPart& sound) { sound.first = 200; }), HasSubstr("and within the prompt"));
}

TEST_P(PromptSound, TextAloneNeedsNoEncoder) {
  EngineOptions options;
  options.model.dir = GetParam().model();
  options.device.type = "cpu";
  options.media.sounds = 0;
  const auto engine = load_engine(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->info().sound.tokens, 0);
}

}  // namespace
}  // namespace octavo
