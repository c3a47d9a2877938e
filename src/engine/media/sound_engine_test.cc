// Tests engines of speech models on every backend, in chunks, alone and in batches, and compares the
// results with transformers. tools/goldens/make_sound_goldens.py creates the data in tests/data/sound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "engine/testing/logprobs.h"
#include "kernels/backends.h"
#include "media/testing/golden.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = "tests/data/sound/whisper";

MediaPart sound_of(const std::vector<float>& mel) {
  const auto bytes = std::as_bytes(std::span(mel));
  return {.digest = hash_bytes(HashAlgorithm::sha256, bytes, 0),
          .bytes = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
}

const media::VisionGolden& golden() {
  static const media::VisionGolden golden("whisper", media::kSoundRoot);
  return golden;
}

Request request_of(std::vector<TokenId> prompt, const std::vector<float>& mel, int max_tokens = 4) {
  Request request;
  request.prompt = std::move(prompt);
  request.media = {sound_of(mel)};
  request.sampling.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

std::vector<float> quieter(int seed) {
  std::vector<float> mel = golden().values<float>("mel");
  for (std::size_t i = 0; i < mel.size(); ++i) mel[i] -= 0.02F * static_cast<float>(seed * (i % 7));
  return mel;
}

struct SoundTestOptions {
  std::string device = "cpu";
  std::optional<CpuIsa> isa = {};
  int step_tokens = 2048;
  int sequences = 8;
  int blocks = 256;
};

std::unique_ptr<Engine> sound_engine_of(const SoundTestOptions& test = {}) {
  EngineOptions options;
  options.model.dir = kModel;
  options.device.type = test.device;
  options.model.dtype = "float32";
  options.device.threads = 2;
  options.schedule.max_num_batched_tokens = test.step_tokens;
  options.schedule.max_num_seqs = test.sequences;
  options.logprobs.max = -1;
  options.cache.num_blocks = test.blocks;
  const auto dress = [&](Backend) { return make_cpu_backend({.threads = 2, .isa = test.isa}).value(); };
  auto engine = test.isa ? load_engine(options, {.dress = dress}) : load_engine(options);
  CHECK(engine.has_value(), "{}", engine.error().message);
  return *std::move(engine);
}

// Returns the maximum difference from the logprobs of transformers, over a whole prompt and the vocabulary.
double distance(Engine& engine) {
  const auto ids = golden().values<TokenId>("ids");
  const auto logits = golden().values<float>("logits");
  const std::size_t vocab = logits.size() / ids.size();
  Request request = request_of(ids, golden().values<float>("mel"));
  request.sampling.logprobs.prompt = -1;
  const auto record = run(engine, std::move(request));
  EXPECT_EQ(record.prompt_logprobs.size() + 1, ids.size());
  double most = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const auto row = std::span(logits).subspan(i * vocab, vocab);
    double sum = 0;
    for (const float logit : row) sum += std::exp(double{logit});
    for (const auto& [id, logprob] : record.prompt_logprobs[i].top)
      most = std::max(most, std::abs(logprob - (row[static_cast<std::size_t>(id)] - std::log(sum))));
    EXPECT_EQ(record.prompt_logprobs[i].top.size(), vocab);
  }
  return most;
}

TEST(SoundEngine, ComputesWhatTransformersComputes) {
  for (const char* device : {"cpu", "reference"})
    EXPECT_LE(distance(*sound_engine_of({.device = device})), 1e-4) << device;
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) {
      EXPECT_LE(distance(*sound_engine_of({.isa = isa})), 1e-4) << name(isa);
    }
  EXPECT_LE(distance(*sound_engine_of({.step_tokens = 5, .sequences = 5})), 1e-4);
  if (make_cuda_backend()) {
    EXPECT_LE(distance(*sound_engine_of({.device = "cuda", .step_tokens = 64})), 1e-4);
  }
}

// Decoding steps are CUDA graphs, which are padded to sizes of 1, 2, 4 and 8 sequences.
TEST(SoundEngine, AnswersOnCudaAreThoseOfTheCpu) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(request_of({257, 258, 3 + i}, quieter(i % 2), 6));
    requests.back().sampling.ignore_eos = true;
  }
  const auto cpu = answers_one_by_one(*sound_engine_of(), requests);
  const auto engine = sound_engine_of({.device = "cuda", .step_tokens = 64});
  const auto together = answers_to(*engine, requests);
  EXPECT_EQ(together, answers_one_by_one(*engine, requests));
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(together[i].tokens, cpu[i].tokens) << i;
}

// Some tokens are never allowed, and some are not allowed as the first token.
TEST(SoundEngine, SaysWhatTransformersSays) {
  const auto expected = golden().values<TokenId>("greedy");
  const auto ids = golden().values<TokenId>("ids");
  Request request = request_of({ids.begin(), ids.begin() + 4}, golden().values<float>("mel"), 40);
  request.eos_ids = {256};
  for (const auto id : golden().values<TokenId>("suppressed"))
    request.sampling.tokens.bad_word_ids.push_back({id});
  request.sampling.tokens.begin_suppress_tokens = {220, 256};
  EXPECT_EQ(run(*sound_engine_of(), std::move(request)).tokens, expected);
}

TEST(SoundEngine, BeginSuppressTokensMayComeLater) {
  const auto engine = sound_engine_of();
  const auto mel = golden().values<float>("mel");
  const auto free = run(*engine, request_of({257}, mel)).tokens;
  Request request = request_of({257}, mel);
  request.sampling.tokens.begin_suppress_tokens = {free[0]};
  const auto changed = run(*engine, std::move(request)).tokens;
  EXPECT_NE(changed[0], free[0]);
  Request follows = request_of({257, changed[0]}, mel);
  EXPECT_EQ(run(*engine, std::move(follows)).tokens[0], changed[1]);
}

// There are fewer slots than requests, steps are small, each request runs twice, and some sequences are
// preempted.
TEST(SoundEngine, AnswersDoNotDependOnNeighbours) {
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) {
    std::vector<TokenId> prompt{257, 258};
    for (int t = 0; t < 9 * i; ++t) prompt.push_back(t % 90);
    requests.push_back(request_of(prompt, quieter(i % 4), 20));
    requests.back().sampling.ignore_eos = true;
  }
  const std::vector<CollectedAnswer> expected =
      answers_one_by_one(*sound_engine_of({.sequences = 1}), requests);
  EXPECT_NE(expected[0].tokens, expected[1].tokens);
  for (const int blocks : {256, 8}) {
    const bool scarce = blocks == 8;
    const auto engine =
        sound_engine_of({.step_tokens = scarce ? 64 : 11, .sequences = scarce ? 8 : 2, .blocks = blocks});
    expect_answers(*engine, requests, expected, scarce);
  }
}

TEST(SoundPrefix, IsSharedByEqualSoundsAlone) {
  const auto engine = sound_engine_of();
  const auto ids = golden().values<TokenId>("ids");
  const auto cached = [&](int seed) {
    return run(*engine, request_of(ids, quieter(seed))).ends.at(0).cached_tokens;
  };
  EXPECT_EQ(cached(0), 0);
  EXPECT_EQ(cached(0), static_cast<int>(ids.size() - 1) / 16 * 16);
  EXPECT_EQ(cached(1), 0);
}

TEST(SoundRequests, ThatDoNotFitAreRefused) {
  const auto engine = sound_engine_of();
  EXPECT_EQ(engine->info().sound.mels, 80);
  EXPECT_EQ(engine->info().sound.frames, 200);
  const auto error = [&](auto change) {
    Request request = request_of({257}, golden().values<float>("mel"));
    change(request);
    const auto id = engine->submit(std::move(request), std::make_shared<Recorder>());
    return id ? std::string() : id.error().message;
  };
  EXPECT_THAT(error([](Request& r) { r.media.clear(); }), HasSubstr("use /v1/audio/transcriptions"));
  EXPECT_THAT(error([](Request& r) { r.media.push_back(r.media[0]); }),
              HasSubstr("use /v1/audio/transcriptions"));
  EXPECT_THAT(error([](Request& r) { r.media[0].bytes.pop_back(); }),
              HasSubstr("must have 64000 bytes, got 63999"));
  EXPECT_THAT(error([](Request& r) { r.media[0].tokens = 1; }), HasSubstr("a spectrogram must have"));
}

TEST(SoundModels, RefuseWhatTheyCannotDoYet) {
  EngineOptions options;
  options.model.dir = kModel;
  options.device.type = "cpu";
  EngineOptions lora = options;
  lora.lora.enabled = true;
  EXPECT_THAT(load_engine(lora).error().message, HasSubstr("is not supported with LoRA adapters yet"));
  EngineOptions speculative = options;
  speculative.speculation = SpeculativeOptions{};
  EXPECT_THAT(load_engine(speculative).error().message, HasSubstr("is not supported with draft tokens yet"));
  EngineOptions pooling = options;
  pooling.model.runner = "pooling";
  EXPECT_THAT(load_engine(pooling).error().message, HasSubstr("is not supported as a pooling model yet"));
  EngineOptions narrow = options;
  narrow.cache.memory_bytes = 1;
  EXPECT_THAT(load_engine(narrow).error().field, HasSubstr("kv_cache_memory_bytes"));
}

}  // namespace
}  // namespace octavo
