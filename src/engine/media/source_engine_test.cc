// Tests engines of encoder-decoder models on every backend, in chunks, alone and in batches, and compares
// the results with transformers. tools/goldens/make_source_goldens.py creates the data in
// tests/data/source.
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

struct SourceTestOptions {
  std::string device = "cpu";
  std::optional<CpuIsa> isa = {};
  std::string dtype = "float32";
  int threads = 2;
  int step_tokens = 2048;
  int sequences = 8;
  int blocks = 256;
};

class SourceEngine : public testing::TestWithParam<const char*> {
 protected:
  std::string model() const { return "tests/data/source/" + std::string(GetParam()) + file_; }
  const media::VisionGolden& golden() {
    if (!golden_) golden_.emplace(GetParam(), "tests/data/source/");
    return *golden_;
  }
  std::vector<TokenId> tokens(const std::string& name) { return golden().values<TokenId>(name); }

  std::unique_ptr<Engine> engine_of(const SourceTestOptions& test = {}) const {
    EngineOptions options;
    options.model.dir = model();
    options.device.type = test.device;
    options.model.dtype = test.dtype;
    options.device.threads = test.threads;
    options.schedule.max_num_batched_tokens = test.step_tokens;
    options.schedule.max_num_seqs = test.sequences;
    options.logprobs.max = -1;
    options.cache.num_blocks = test.blocks;
    const auto dress = [&](Backend) {
      return make_cpu_backend({.threads = test.threads, .isa = test.isa}).value();
    };
    auto engine = test.isa ? load_engine(options, {.dress = dress}) : load_engine(options);
    CHECK(engine.has_value(), "{}", engine.error().message);
    return *std::move(engine);
  }
  static Request request_of(std::vector<TokenId> prompt, std::span<const TokenId> source,
                            int max_tokens = 4) {
    Request request;
    request.prompt = std::move(prompt);
    request.media = {source_of(source)};
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    return request;
  }

  // Returns the maximum difference from the logprobs of transformers, over the whole text and the
  // vocabulary.
  double distance(Engine& engine, const std::string& name) {
    const auto ids = tokens("ids");
    const auto logits = golden().values<float>("logits." + name);
    const std::size_t vocab = logits.size() / ids.size();
    Request request = request_of(ids, tokens("source." + name));
    request.sampling.logprobs.prompt = -1;
    const auto record = run(engine, std::move(request));
    EXPECT_EQ(record.prompt_logprobs.size() + 1, ids.size());
    double most = 0;
    for (std::size_t i = 0; i < record.prompt_logprobs.size(); ++i) {
      const auto row = std::span(logits).subspan(i * vocab, vocab);
      double sum = 0;
      for (const float logit : row) sum += std::exp(double{logit});
      for (const auto& [id, logprob] : record.prompt_logprobs[i].top)
        most = std::max(most, std::abs(logprob - (row[static_cast<std::size_t>(id)] - std::log(sum))));
      EXPECT_EQ(record.prompt_logprobs[i].top.size(), vocab);
    }
    return most;
  }

  std::string file_ = {};  // "/model.gguf"; empty: the folder

 private:
  std::optional<media::VisionGolden> golden_;
};

INSTANTIATE_TEST_SUITE_P(Cases, SourceEngine, testing::Values("t5", "flan-t5", "bart", "mbart"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(SourceEngine, ComputesWhatTransformersComputes) {
  // T5 does not scale attention scores, so rounding has more effect than in other models. In transformers,
  // double and single precision differ by the same amount.
  const double bound = std::string_view(GetParam()).ends_with("bart") ? 1e-4 : 2e-3;
  for (const char* name : {"short", "long"}) {
    EXPECT_LE(distance(*engine_of(), name), bound) << name;
    EXPECT_LE(distance(*engine_of({.step_tokens = 7, .sequences = 7}), name), bound) << name;
  }
  EXPECT_LE(distance(*engine_of({.device = "reference"}), "short"), bound);
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) {
      EXPECT_LE(distance(*engine_of({.isa = isa}), "long"), bound) << octavo::name(isa);
    }
  if (make_cuda_backend()) {
    EXPECT_LE(distance(*engine_of({.device = "cuda", .step_tokens = 64}), "short"), bound);
  }
}

// The second answer is decoded by CUDA graphs. The prompt is longer than the short source.
TEST_P(SourceEngine, AnswersOnCudaAreThoseOfTheCpu) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  const auto source = tokens("source.short");
  std::vector<TokenId> prompt = engine_of()->info().source.begin;
  for (TokenId id = 10; prompt.size() <= source.size(); ++id) prompt.push_back(id);
  const auto answer_of = [&](Engine& engine) {
    Request request = request_of(prompt, source, 8);
    request.sampling.ignore_eos = true;
    return run(engine, std::move(request)).tokens;
  };
  const auto engine = engine_of({.device = "cuda", .step_tokens = 64});
  const auto expected = answer_of(*engine_of());
  EXPECT_EQ(answer_of(*engine), expected);
  EXPECT_EQ(answer_of(*engine), expected);
}

// GGUF files with tokenizers and the parameters of flan-t5. tools/goldens/gguf_encoders.py creates them.
class SourceGgufFile : public SourceEngine {};
INSTANTIATE_TEST_SUITE_P(Cases, SourceGgufFile, testing::Values("t5-gguf", "flan-t5"), [](const auto& test) {
  std::string name = test.param;
  std::erase(name, '-');
  return name;
});

TEST_P(SourceGgufFile, GivesTheSame) {
  file_ = "/model.gguf";
  EXPECT_LE(distance(*engine_of(), "long"), 2e-3);
  EXPECT_LE(distance(*engine_of({.device = "reference"}), "short"), 2e-3);
  const auto engine = engine_of();
  const auto expected = tokens("said");
  Request request =
      request_of(engine->info().source.begin, tokens("text"), static_cast<int>(expected.size()));
  request.sampling.ignore_eos = true;
  EXPECT_EQ(run(*engine, std::move(request)).tokens, expected);
}

TEST_P(SourceEngine, SaysWhatTransformersSays) {
  const auto engine = engine_of();
  const std::vector<TokenId> begin = engine->info().source.begin;
  for (const auto& [source, expected_name] :
       {std::pair("source.short", "greedy.short"), {"source.long", "greedy.long"}, {"text", "said"}}) {
    const auto expected = tokens(expected_name);
    Request request = request_of(begin, tokens(source), static_cast<int>(expected.size()));
    request.sampling.ignore_eos = true;
    EXPECT_EQ(run(*engine, std::move(request)).tokens, expected) << source;
  }
}

// There are fewer slots than requests, and steps are small. Runs in bf16 with one thread and with several
// threads, with preemptions.
TEST_P(SourceEngine, AnswersDoNotDependOnNeighbours) {
  const auto all = tokens("source.long");
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto alone = engine_of({.dtype = dtype, .threads = 1, .sequences = 1});
    std::vector<Request> requests;
    for (int i = 0; i < 6; ++i) {
      std::vector<TokenId> prompt = alone->info().source.begin;
      for (int t = 0; t < 9 * i; ++t) prompt.push_back(3 + t % 90);
      requests.push_back(
          request_of(prompt, std::span(all).first(static_cast<std::size_t>(1 + 73 * (i % 4))), 20));
      requests.back().sampling.ignore_eos = true;
    }
    const std::vector<CollectedAnswer> expected = answers_one_by_one(*alone, requests);
    EXPECT_NE(expected[0].tokens, expected[1].tokens);
    for (const int blocks : {256, 8}) {
      const bool scarce = blocks == 8;
      const auto engine = engine_of({.dtype = dtype,
                                     .threads = 3,
                                     .step_tokens = scarce ? 64 : 11,
                                     .sequences = scarce ? 8 : 2,
                                     .blocks = blocks});
      expect_answers(*engine, requests, expected, scarce);
    }
  }
}

TEST_P(SourceEngine, PrefixesAreSharedByEqualSourcesAlone) {
  const auto engine = engine_of();
  const auto ids = tokens("ids"), source = tokens("source.long");
  const auto cached = [&](std::size_t length) {
    return run(*engine, request_of(ids, std::span(source).first(length))).ends.at(0).cached_tokens;
  };
  EXPECT_EQ(cached(40), 0);
  EXPECT_EQ(cached(40), static_cast<int>(ids.size() - 1) / 16 * 16);
  EXPECT_EQ(cached(41), 0);
}

TEST_P(SourceEngine, RequestsThatDoNotFitAreRefused) {
  const auto engine = engine_of();
  EXPECT_EQ(engine->info().source.tokens, 320);
  const auto error = [&](auto change) {
    Request request = request_of({3}, tokens("source.short"));
    change(request);
    const auto id = engine->submit(std::move(request), std::make_shared<Recorder>());
    return id ? std::string() : id.error().message;
  };
  EXPECT_THAT(error([](Request& r) { r.media.clear(); }), HasSubstr("use /v1/completions"));
  EXPECT_THAT(error([](Request& r) { r.media.push_back(r.media[0]); }), HasSubstr("use /v1/completions"));
  EXPECT_THAT(error([](Request& r) { r.media[0].bytes.pop_back(); }), HasSubstr("have 28 bytes, got 27"));
  EXPECT_THAT(error([](Request& r) { r.media[0].columns = 0; }),
              HasSubstr("must have 1 to 320 tokens, got 0"));
  EXPECT_THAT(error([](Request& r) { r.media = {source_of(std::vector<TokenId>(321, 5))}; }),
              HasSubstr("got 321"));
  EXPECT_THAT(error([](Request& r) { r.media = {source_of(std::vector<TokenId>{5, 120})}; }),
              HasSubstr("token id 120 is out of vocabulary: must be in [0, 120)"));
}

TEST_P(SourceEngine, WhatItCannotDoYetIsRefused) {
  EngineOptions options;
  options.model.dir = model();
  options.device.type = "cpu";
  options.speculation = SpeculativeOptions{};
  EXPECT_THAT(load_engine(options).error().message,
              HasSubstr("encodes prompts with an encoder, which is not supported with draft tokens yet"));
}

}  // namespace
}  // namespace octavo
