// Tests encoders whose pooling, heads or adapters come from files or options, and the checks of their
// requests.
#include "engine/testing/encoder_rig.h"

namespace octavo {
namespace {

using namespace encoder_rig;

TEST(PoolingType, StandsAboveTheFiles) {
  const std::string directory = std::string(kRoot) + "bert";
  const std::vector<Text> texts = read_texts(directory, "mean");
  EngineOptions options;
  options.model.pooling_type = "MEAN";
  const auto engine = encoder_engine_of(directory, {}, "cpu", "auto", options).value();
  const auto vectors = pooled(*engine, texts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_LE(most_difference(vectors[i], texts[i].expected), 1e-4F) << i;
  options.model.pooling_type = "ALL";
  EXPECT_EQ(encoder_engine_of(directory, {}, "cpu", "auto", options).value()->info().tasks.default_task,
            Task::token_embed);
  EXPECT_EQ(encoder_engine_of("tests/data/models/qwen3", {}, "cpu", "auto", options).error().field,
            "pooler_config");
  options.model.pooling_type = "STEP";
  EXPECT_EQ(encoder_engine_of(directory, {}, "cpu", "auto", options).error().field, "pooling_type");
  options.model.pooling_type = "";
  options.model.convert = "embed";
  EXPECT_EQ(encoder_engine_of("tests/data/models/qwen3", {}, "cpu", "auto", options)
                .value()
                ->info()
                .tasks.default_task,
            Task::embed);
  EXPECT_EQ(encoder_engine_of(std::string(kRoot) + "bert-reranker", {}, "cpu", "auto", options).error().field,
            "convert");
  options.model.convert = "none";
  EXPECT_EQ(encoder_engine_of("tests/data/models/qwen3", {}, "cpu", "pooling", options).error().field,
            "convert");
}

// A folder of Sentence Transformers that contains the checkpoint of a test case.
class SentenceFolder : public EncoderEngine {
 protected:
  void SetUp() override {
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(kRoot) / GetParam() / file, folder_ / file);
    folder_.write("sentence_bert_config.json", R"({"max_seq_length": 290})");
    modules(R"({"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"})");
    pooling(R"({"pooling_mode_mean_tokens": true})");
  }
  void modules(std::string_view last) {
    folder_.write(
        "modules.json",
        fmt::format(R"([{{"type": "sentence_transformers.models.Transformer", "path": ""}},)"
                    R"({{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}},{}])",
                    last));
  }
  void pooling(std::string_view config) { folder_.write("1_Pooling/config.json", config); }
  std::string path() const { return folder_.path(); }
  std::string error() const {
    const auto engine = encoder_engine_of(path(), {}, "cpu");
    return engine ? "none" : engine.error().message;
  }

  ScratchDirectory folder_;
};
INSTANTIATE_TEST_SUITE_P(Families, SentenceFolder, testing::Values("bert", "roberta"), test_name);

TEST_P(SentenceFolder, SaysHowVectorsArePooled) {
  agree(path(), "mean");
  const auto engine = encoder_engine_of(path(), {}, "cpu").value();
  EXPECT_TRUE(engine->info().tasks.normalise);
  EXPECT_EQ(engine->info().tasks.default_task, Task::embed);
  EXPECT_EQ(engine->info().max_model_len, 290);
}

TEST_P(SentenceFolder, PoolsInEveryWay) {
  for (const char* way : {"max", "mean_sqrt_len_tokens", "weightedmean"}) {
    SCOPED_TRACE(way);
    pooling(fmt::format(R"({{"pooling_mode": "{}"}})", way));
    agree(path(), way);
  }
  pooling(R"({"pooling_mode_mean_tokens": false, "pooling_mode_weightedmean_tokens": true})");
  agree(path(), "weightedmean");
}

TEST_P(SentenceFolder, WhatIsNotDoneIsRefused) {
  pooling(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  EXPECT_THAT(error(), testing::HasSubstr("one way of pooling"));
  pooling(R"({"pooling_mode_cls_token": true})");
  EXPECT_EQ(error(), "none");
  modules(R"({"type": "sentence_transformers.models.CNN", "path": "2_CNN"})");
  EXPECT_THAT(error(), testing::HasSubstr("models.CNN"));
  modules(R"({"type": "sentence_transformers.models.Pooling", "path": "../elsewhere"})");
  EXPECT_THAT(error(), testing::HasSubstr("names a folder outside of the model's folder"));
  modules(R"({"path": ""})");
  EXPECT_THAT(error(), testing::HasSubstr("type is missing"));
}

// A batch has texts with one vector per token and texts with one vector. The bits are the same as in
// separate runs.
TEST(TokenVectors, ComeOfModelsThatEmbed) {
  const std::string directory = std::string(kRoot) + "nomic_bert";
  const std::vector<Text> texts = read_texts(directory, "mean");
  const auto engine = encoder_engine_of(directory, {}, "cpu").value();
  const auto size = static_cast<std::size_t>(engine->info().tasks.pooled_size);
  const auto alone = pooled(*engine, texts);
  const auto mixed =
      pooled(*engine, texts, [](std::size_t i) { return i % 2 == 0 ? Task::token_embed : Task::embed; });
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % 2 == 1) {
      EXPECT_EQ(mixed[i], alone[i]) << i;
      continue;
    }
    ASSERT_EQ(mixed[i].size(), texts[i].ids.size() * size);
    std::vector<float> mean(size);
    for (std::size_t k = 0; k < mixed[i].size(); ++k)
      mean[k % size] += mixed[i][k] / static_cast<float>(texts[i].ids.size());
    EXPECT_LE(most_difference(mean, texts[i].expected), 1e-4F) << i;
  }
}

TEST(TokenHeads, MakeVectorsAndWeightsBesideTheTexts) {
  const std::string directory = std::string(kRoot) + "bge-m3";
  EngineOptions options;
  options.model.hf_overrides = R"({"architectures": ["BgeM3EmbeddingModel"]})";
  constexpr Task kTasks[] = {Task::embed, Task::token_embed, Task::token_classify};
  const std::vector<Text> expected[] = {read_texts(directory, "first"), read_texts(directory, "vectors"),
                                        read_texts(directory, "weights")};
  std::vector<Text> all;
  for (std::size_t i = 0; i < expected[0].size(); ++i)
    for (const auto& of_task : expected) all.push_back(of_task[i]);
  const auto task_of = [&](std::size_t i) { return kTasks[i % 3]; };
  const auto check = [&](const std::string& name, std::optional<CpuIsa> isa, const std::string& device,
                         std::size_t count) {
    SCOPED_TRACE(name);
    const std::span texts = std::span(all).first(count);
    const auto engine = encoder_engine_of(directory, isa, device, "auto", options);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    const EngineInfo info = (*engine)->info();
    EXPECT_EQ(info.tasks.default_task, Task::embed);
    EXPECT_EQ(info.tasks.token_head(Task::token_embed)->left_out_first, 0);
    EXPECT_EQ(info.tasks.token_head(Task::token_embed)->left_out_last, -1);
    EXPECT_EQ(info.tasks.token_head(Task::token_classify)->left_out_last, 2);
    const auto together = pooled(**engine, texts, task_of);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::vector<float> given = together[i];
      if (task_of(i) == Task::token_embed) normalise_each(given, info.tasks.size_for(Task::token_embed));
      if (task_of(i) == Task::token_classify)
        activate(info.tasks.token_head(Task::token_classify)->activation, given);
      EXPECT_LE(most_difference(given, texts[i].expected), 1e-4F) << "text " << i;
      const auto alone = pooled(**engine, texts.subspan(i, 1), [&](std::size_t) { return task_of(i); });
      EXPECT_EQ(together[i], alone[0]) << "text " << i;
    }
  };
  check("reference", {}, "reference", all.size());
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) check(std::string(name(isa)), isa, "cpu", all.size());
  if (make_cuda_backend()) check("cuda", {}, "cuda", 6);  // few texts, because the emulated device is slow
  // With the published architecture name, the model is an XLM-RoBERTa without token heads.
  EXPECT_TRUE(encoder_engine_of(directory, {}, "cpu").value()->info().tasks.token_heads.empty());
}

TEST(TokenHeads, AreInFilesOfTheirOwn) {
  const ScratchDirectory folder;
  for (const char* file : {"config.json", "model.safetensors", "colbert_linear.pt"})
    fs::copy_file(fs::path(kRoot) / "bge-m3" / file, folder / file);
  EngineOptions options;
  options.model.hf_overrides = R"({"architectures": ["BgeM3EmbeddingModel"]})";
  const auto error = [&] {
    const auto engine = encoder_engine_of(folder.path(), {}, "cpu", "auto", options);
    return engine ? "none" : engine.error().message;
  };
  EXPECT_THAT(error(), testing::HasSubstr("sparse_linear.pt"));
  fs::copy_file(folder / "colbert_linear.pt", folder / "sparse_linear.pt");
  EXPECT_THAT(error(), testing::HasSubstr("sparse_linear.weight"));
}

// Tasks of Jina v3: a batch has texts for the base model and texts for an adapter.
TEST(AdaptedEncoder, ReadsTextsByTheTaskThatTheyAreFor) {
  const std::string directory = std::string(kRoot) + "jina_v3";
  EngineOptions options;
  options.lora = {.enabled = true, .max_loras = 1, .max_lora_rank = 8, .max_cpu_loras = {}};
  const auto engine = encoder_engine_of(directory, {}, "cpu", "auto", options).value();
  std::promise<std::string> loaded;
  engine->load_adapter({"task", directory + "/adapter"}, [&](const Result<>& result) {
    loaded.set_value(result ? "" : result.error().message);
  });
  ASSERT_EQ(loaded.get_future().get(), "");
  const std::vector<Text> plain = read_texts(directory, "mean"), adapted = read_texts(directory, "adapted");
  const auto submit = [&](const Text& text, const std::string& adapter) {
    Request request;
    request.task = Task::embed;
    request.prompt = text.ids;
    request.second_text = text.second;
    request.identity.adapter = adapter;
    auto recorder = std::make_shared<Recorder>();
    EXPECT_TRUE(engine->submit(std::move(request), recorder).has_value());
    return recorder;
  };
  const auto vector_of = [](Recorder& recorder) {
    recorder.wait_ended(1);
    return recorder.record().ends.at(0).pooled;
  };
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    recorders.push_back(submit(plain[i], ""));
    recorders.push_back(submit(adapted[i], "task"));
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto own = vector_of(*recorders[2 * i]), changed = vector_of(*recorders[2 * i + 1]);
    EXPECT_LE(most_difference(own, plain[i].expected), 1e-4F) << i;
    EXPECT_LE(most_difference(changed, adapted[i].expected), 1e-4F) << i;
    EXPECT_EQ(changed, vector_of(*submit(adapted[i], "task"))) << i;
  }
  EXPECT_GT(most_difference(plain[0].expected, adapted[0].expected), 0.1F);
}

// A matrix from a separate file is applied after mean pooling.
TEST_P(SentenceFolder, MatricesFollowThePooling) {
  constexpr std::int64_t kOutputs = 5;
  const auto plain = encoder_engine_of(path(), {}, "cpu").value();
  const std::int64_t inputs = plain->info().tasks.pooled_size;
  std::vector<float> weight(static_cast<std::size_t>(kOutputs * inputs)), bias{1, -1, 0.5F, 0, 2};
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 8) / 8 - 0.5F;
  fs::create_directories(folder_ / "2_Dense");
  const auto bytes = [](const std::vector<float>& v) { return v.size() * sizeof(float); };
  auto writer = SafetensorsWriter::create(folder_ / "2_Dense/model.safetensors",
                                          {{"linear.weight", "F32", {kOutputs, inputs}, bytes(weight)},
                                           {"linear.bias", "F32", {kOutputs}, bytes(bias)}})
                    .value();
  ASSERT_TRUE(writer.write("linear.weight", std::as_bytes(std::span(weight))));
  ASSERT_TRUE(writer.write("linear.bias", std::as_bytes(std::span(bias))));
  ASSERT_TRUE(writer.finish());
  const auto config = [&](std::string_view activation) {
    folder_.write("2_Dense/config.json",
                  fmt::format(R"({{"in_features": {}, "out_features": {}, "bias": true,)"
                              R"("activation_function": "torch.nn.modules.activation.{}"}})",
                              inputs, kOutputs, activation));
  };
  modules(R"({"type": "sentence_transformers.models.Dense", "path": "2_Dense"})");
  const std::vector<Text> texts = read_texts(kRoot + GetParam(), "mean");
  for (const bool tanh : {false, true}) {
    config(tanh ? "Tanh" : "Identity");
    const auto engine = encoder_engine_of(path(), {}, "cpu");
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_EQ((*engine)->info().tasks.pooled_size, kOutputs);
    const auto vectors = pooled(**engine, texts);
    for (std::size_t t = 0; t < texts.size(); ++t)
      for (std::size_t row = 0; row < kOutputs; ++row) {
        double sum = bias[row];
        for (std::size_t i = 0; i < static_cast<std::size_t>(inputs); ++i)
          sum += double{weight[row * static_cast<std::size_t>(inputs) + i]} * texts[t].expected[i];
        EXPECT_NEAR(vectors[t].at(row), tanh ? std::tanh(sum) : sum, 1e-3) << t;
      }
  }
  config("ELU");
  EXPECT_THAT(error(), testing::HasSubstr("must be Identity, Tanh"));
  config("Tanh");
  fs::remove(folder_ / "2_Dense/model.safetensors");
  EXPECT_THAT(error(), testing::HasSubstr("contains neither model.safetensors"));
}

// If a text shares a prefix with an earlier text, only the rest is computed. The bits stay the same.
TEST(CausalEmbedder, ReadsCachedPrefixes) {
  std::vector<Text> texts = read_texts(std::string(kRoot) + "qwen3-embedder", "last");
  Text& longest = *std::ranges::max_element(texts, {}, [](const Text& t) { return t.ids.size(); });
  Text branch{.ids = {longest.ids.begin(), longest.ids.begin() + 100}, .second = {}, .expected = {}};
  branch.ids.back() ^= 1;
  texts.push_back(branch);
  EngineOptions options;
  options.cache.enable_prefix_caching = false;
  const auto hits = [](Engine& engine) { return engine.own_stats().prefix_cache.hits; };
  const auto fresh =
      encoder_engine_of(std::string(kRoot) + "qwen3-embedder", {}, "cpu", "auto", options).value();
  const auto expected = pooled(*fresh, texts);
  EXPECT_EQ(pooled(*fresh, texts), expected);
  EXPECT_EQ(hits(*fresh), 0);
  options.cache.enable_prefix_caching = true;
  const auto cached =
      encoder_engine_of(std::string(kRoot) + "qwen3-embedder", {}, "cpu", "auto", options).value();
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(pooled(*cached, std::span(texts).subspan(i, 1))[0], expected[i]) << round << " " << i;
  // The first round reuses the common prefix. The second round reuses all full blocks except those with the
  // last token. The statistics are updated after the response.
  std::int64_t reused = 96;
  for (const Text& text : texts)
    reused += (std::ssize(text.ids) - 1) / options.cache.block_size * options.cache.block_size;
  EXPECT_TRUE(eventually([&] { return hits(*cached) == reused; })) << hits(*cached) << " of " << reused;
  // For token vectors, all tokens are computed. Their blocks are cached, too.
  const auto tokens = [&](Engine& engine) {
    return pooled(engine, std::span(texts).last(1), [](std::size_t) { return Task::token_embed; });
  };
  const auto before = hits(*cached);
  EXPECT_EQ(tokens(*cached), tokens(*fresh));
  EXPECT_EQ(hits(*cached), before);
  // With this pooling type, nothing is cached.
  options.model.pooling_type = "MEAN";
  const auto mean =
      encoder_engine_of(std::string(kRoot) + "qwen3-embedder", {}, "cpu", "auto", options).value();
  EXPECT_EQ(pooled(*mean, texts), pooled(*mean, texts));
  EXPECT_EQ(hits(*mean), 0);
}

TEST(EncoderRequests, AreCheckedAgainstTheModel) {
  const auto engine = encoder_engine_of(std::string(kRoot) + "bert", {}, "cpu").value();
  const auto refusal = [&](Task task, std::size_t tokens) {
    Request request;
    request.task = task;
    request.prompt.assign(tokens, 5);
    const auto id = engine->submit(std::move(request), std::make_shared<Recorder>());
    return id ? "none" : id.error().message;
  };
  EXPECT_THAT(refusal(Task::generate, 3), testing::HasSubstr("make vectors of texts"));
  EXPECT_THAT(refusal(Task::classify, 3), testing::HasSubstr("make vectors of texts"));
  EXPECT_THAT(refusal(Task::embed, 0), testing::HasSubstr("empty"));
  EXPECT_THAT(refusal(Task::embed, 321), testing::HasSubstr("the model accepts at most 320"));
  EXPECT_EQ(refusal(Task::embed, 320), "none");
}

TEST(EncoderRunner, IsWhatTheModelIsMadeFor) {
  const auto encoder = encoder_engine_of(std::string(kRoot) + "bert", {}, "cpu", "generate");
  ASSERT_FALSE(encoder.has_value());
  EXPECT_EQ(encoder.error().field, "runner");
  // A generating model returns the vector of the last token for an embedding request.
  const auto engine = encoder_engine_of("tests/data/models/qwen3", {}, "cpu", "pooling");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->info().tasks.default_task, Task::embed);
  std::vector<TokenId> ids(40);
  std::iota(ids.begin(), ids.end(), 3);
  const Text texts[] = {{.ids = ids, .second = {}, .expected = {}},
                        {.ids = {ids.begin(), ids.begin() + 9}, .second = {}, .expected = {}}};
  const auto together = pooled(**engine, texts);
  EXPECT_EQ(together[0].size(), static_cast<std::size_t>((*engine)->info().tasks.pooled_size));
  EXPECT_EQ(together[1], pooled(**engine, std::span(texts).subspan(1))[0]);
  EXPECT_NE(together[0], together[1]);
}

}  // namespace
}  // namespace octavo
