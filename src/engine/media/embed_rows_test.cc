// Tests prompts that are embeddings. The rows of the model's own embedding table must give the same outputs
// as the token ids, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "kernels/backends.h"
#include "weights/checkpoint.h"

namespace octavo {
namespace {

using testing::HasSubstr;

EngineOptions embeds_options(const std::string& model, const std::string& device = "cpu") {
  EngineOptions options;
  options.model.dir = "tests/data/" + model;
  options.device.type = device;
  options.device.threads = 2;
  options.cache.num_blocks = 60;
  options.schedule.max_num_batched_tokens = 48;  // long prompts take several steps
  options.schedule.max_num_seqs = 6;
  options.model.prompt_embeds = true;
  return options;
}

// Replaces the ids of the request by their rows of the embedding table.
Request with_rows(const EngineOptions& options, Request request) {
  const Checkpoint checkpoint = Checkpoint::open(options.model.dir).value();
  const View table = view_of(*checkpoint.find("model.embed_tokens.weight"));
  std::vector<float> rows;
  for (TokenId& id : request.prompt) {
    const auto* const row = table.rows(id, 1).as<BFloat16>();
    std::transform(row, row + table.size(1), std::back_inserter(rows), [](BFloat16 x) { return to_f32(x); });
    id = 0;
  }
  MediaPart part;
  part.tokens = static_cast<int>(request.prompt.size());
  part.embeds = true;
  part.bytes.assign(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float));
  part.digest = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.bytes)), 0);
  request.media = {std::move(part)};
  return request;
}

class PromptEmbeds : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, PromptEmbeds, testing::Values("cpu", "reference", "cuda"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(PromptEmbeds, AnswerAsTheIdsOfTheirTokens) {
  if (GetParam() == std::string("cuda"))
    if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  const EngineOptions options = embeds_options("models/llama", GetParam());
  const auto engine = load_engine(options).value();
  std::vector<Request> ids, rows;
  for (int i = 0; i < 8; ++i) {
    Request request = request_of(i, engine->info().vocab_size);
    request.sampling.logprobs.prompt.reset();
    ids.push_back(request);
    rows.push_back(with_rows(options, std::move(request)));
  }
  const std::vector<CollectedAnswer> expected = answers_to(*engine, ids);
  std::vector<Request> mixed = rows;
  mixed.insert(mixed.end(), ids.begin(), ids.end());
  std::vector<CollectedAnswer> both = expected;
  both.insert(both.end(), expected.begin(), expected.end());
  EXPECT_EQ(answers_to(*engine, mixed), both);
}

int cached_of(Engine& engine, const Request& request) {
  const std::int64_t before = engine.own_stats().prefix_cache.hits;
  answers_to(engine, {request});
  return static_cast<int>(engine.own_stats().prefix_cache.hits - before);
}

TEST(PromptEmbedsCache, IsKeyedByTheRows) {
  const EngineOptions options = embeds_options("models/llama");
  const auto engine = load_engine(options).value();
  Request request = request_of(7, engine->info().vocab_size);
  request.sampling.logprobs.prompt.reset();
  const int whole = static_cast<int>(request.prompt.size() - 1) / 16 * 16;
  Request other = request;
  other.prompt.back() ^= 1;
  const Request rows = with_rows(options, request), changed = with_rows(options, std::move(other));
  cached_of(*engine, request);
  EXPECT_EQ(cached_of(*engine, rows), 0) << "the blocks of ids are not those of rows";
  EXPECT_EQ(cached_of(*engine, rows), whole);
  EXPECT_EQ(cached_of(*engine, changed), 0) << "another row is another prompt";
}

// Without token ids, penalties count only output tokens.
TEST(PromptEmbedsPenalties, SeeNoIds) {
  const EngineOptions options = embeds_options("models/llama");
  const auto engine = load_engine(options).value();
  Request request = request_of(4, engine->info().vocab_size);
  request.sampling.penalties.repetition = 1.5;
  request.sampling.logprobs.output = -1;
  request.sampling.max_tokens = 1;
  EngineOptions processed = options;
  processed.logprobs = {.max = -1, .processed = true};
  const auto shown = load_engine(processed).value();
  Request plain = request;
  plain.sampling.penalties.repetition = 1;
  EXPECT_NE(answers_to(*shown, {request}), answers_to(*shown, {plain}))
      << "the ids of the prompt are penalised";
  EXPECT_EQ(answers_to(*shown, {with_rows(options, request)}),
            answers_to(*shown, {with_rows(options, plain)}));
}

TEST(PromptEmbedsRefusals, NameTheFieldAndTheReason) {
  const EngineOptions options = embeds_options("models/llama");
  const auto engine = load_engine(options).value();
  const auto error = [](Engine& on, const Request& request) {
    const auto id = on.submit(request, std::make_shared<Collector>());
    return id ? std::string() : id.error().field + ": " + id.error().message;
  };
  Request request = request_of(3, engine->info().vocab_size);
  request.sampling.logprobs.prompt = 1;
  const Request rows = with_rows(options, request);
  EXPECT_THAT(error(*engine, rows), HasSubstr("prompt_logprobs: cannot be combined with prompt_embeds"));
  Request shorter = rows;
  shorter.media[0].bytes.resize(shorter.media[0].bytes.size() - 4);
  EXPECT_THAT(error(*engine, shorter), HasSubstr("prompt_embeds: must have 24 rows of 64 f32 numbers"));
  EngineOptions off = options;
  off.model.prompt_embeds = false;
  EXPECT_THAT(error(*load_engine(off).value(), rows),
              HasSubstr("prompt_embeds: is not enabled: start the server with --enable-prompt-embeds"));
  const auto load_error = [](EngineOptions of) {
    const auto loaded = load_engine(of);
    return loaded ? std::string() : loaded.error().field + ": " + loaded.error().message;
  };
  EXPECT_THAT(load_error(embeds_options("models/gpt2")),
              HasSubstr("enable_prompt_embeds: GPT2LMHeadModel adds position or type embeddings"));
  EXPECT_THAT(load_error(embeds_options("encoders/bert")), HasSubstr("is a pooling model"));
  EXPECT_THAT(load_error(embeds_options("vision/qwen2_vl")), HasSubstr("--limit-mm-per-prompt"));
  EXPECT_THAT(load_error(embeds_options("sound/whisper")), HasSubstr("has an encoder for prompts or sound"));
}

}  // namespace
}  // namespace octavo
