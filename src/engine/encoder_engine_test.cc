// Whole engines that read texts: against transformers (tests/data/encoders, made by
// tools/goldens/make_encoder_goldens.py), on every backend, alone and beside each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/scratch_directory.h"
#include "engine/load.h"
#include "engine/test_rig.h"
#include "kernels/backends.h"
#include "tensor/mapped_file.h"
#include "weights/safetensors.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

struct Text {
  std::vector<TokenId> ids;
  std::optional<int> second;
  std::vector<float> expected;
};

template <class T>
std::vector<T> values_of(std::span<const StoredTensor> tensors, std::string_view name) {
  std::vector<T> values;
  for (const StoredTensor& t : tensors) {
    if (t.name != name) continue;
    values.resize(t.bytes.size() / sizeof(T));
    std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
  }
  return values;
}

// The texts of a case, with what transformers makes of them.
std::vector<Text> read_texts(const std::string& directory, std::string_view expected) {
  const auto file = MappedFile::open(directory + "/golden.safetensors").value();
  const auto tensors = parse_safetensors(file.bytes(), directory).value();
  const auto ids = values_of<TokenId>(tensors, "ids");
  const auto types = values_of<std::int32_t>(tensors, "types");
  const auto starts = values_of<std::int32_t>(tensors, "starts");
  const auto rows = values_of<float>(tensors, expected);
  const auto width = std::ssize(rows) / (std::ssize(starts) - 1);
  std::vector<Text> texts;
  for (std::ptrdiff_t s = 0; s + 1 < std::ssize(starts); ++s) {
    const std::int32_t begin = starts[static_cast<std::size_t>(s)],
                       end = starts[static_cast<std::size_t>(s) + 1];
    Text& text = texts.emplace_back();
    text.ids.assign(ids.begin() + begin, ids.begin() + end);
    text.expected.assign(rows.begin() + s * width, rows.begin() + (s + 1) * width);
    const auto second = std::find(types.begin() + begin, types.begin() + end, 1);
    if (second != types.begin() + end) text.second = static_cast<int>(second - types.begin() - begin);
  }
  return texts;
}

Result<std::unique_ptr<Engine>> engine_of(const std::string& directory, std::optional<CpuIsa> isa,
                                          const std::string& device, const std::string& runner = "auto") {
  EngineOptions options;
  options.model_dir = directory;
  options.device = device;
  options.dtype = "float32";
  options.threads = 2;
  options.runner = runner;
  const auto dress = [&](Backend) { return make_cpu_backend({.threads = 2, .isa = isa}).value(); };
  return isa ? load_engine(options, {.dress = dress}) : load_engine(options);
}

// What the engine makes of texts that come together.
std::vector<std::vector<float>> pooled(Engine& engine, std::span<const Text> texts) {
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (const Text& text : texts) {
    Request request;
    request.task = engine.info().task;
    request.prompt = text.ids;
    request.second_text = text.second;
    recorders.push_back(std::make_shared<Recorder>());
    const auto id = engine.submit(std::move(request), recorders.back());
    CHECK(id.has_value(), "{}", id.error().message);
  }
  std::vector<std::vector<float>> vectors;
  for (const auto& recorder : recorders) {
    recorder->wait_ended(1);
    EXPECT_EQ(recorder->record().ends.at(0).finished, FinishReason::stop);
    vectors.push_back(recorder->record().ends.at(0).pooled);
  }
  return vectors;
}

float difference(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK(a.size() == b.size(), "{} and {} numbers", a.size(), b.size());
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

constexpr const char* kRoot = "tests/data/encoders/";

class EncoderEngine : public testing::TestWithParam<std::string> {
 protected:
  void agree(const std::string& directory, std::string_view expected) {
    const std::vector<Text> texts = read_texts(kRoot + GetParam(), expected);
    ASSERT_GE(texts.size(), 5u);
    const auto check = [&](const std::string& name, std::optional<CpuIsa> isa, const std::string& device) {
      SCOPED_TRACE(name);
      const auto engine = engine_of(directory, isa, device);
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      const auto together = pooled(**engine, texts);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        EXPECT_LE(difference(together[i], texts[i].expected), 1e-4F) << "text " << i;
        EXPECT_EQ(together[i], pooled(**engine, std::span(texts).subspan(i, 1))[0]) << "text " << i;
      }
    };
    check("reference", {}, "reference");
    for (const CpuIsa isa : kCpuIsas)
      if (make_cpu_backend({.threads = 1, .isa = isa})) check(std::string(name(isa)), isa, "cpu");
    if (make_cuda_backend()) check("cuda", {}, "cuda");
  }
};

TEST_P(EncoderEngine, GivesTheNumbersOfTransformers) {
  const bool classifies = GetParam().ends_with("classifier") || GetParam().ends_with("reranker");
  agree(kRoot + GetParam(), classifies ? "scores" : "first");
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families, EncoderEngine,
                         testing::Values("bert", "bert-classifier", "bert-reranker", "roberta",
                                         "xlm-roberta-classifier"),
                         test_name);

// A Sentence Transformers folder around the checkpoint of a case.
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
    const auto engine = engine_of(path(), {}, "cpu");
    return engine ? "none" : engine.error().message;
  }

  ScratchDirectory folder_;
};
INSTANTIATE_TEST_SUITE_P(Families, SentenceFolder, testing::Values("bert", "roberta"), test_name);

TEST_P(SentenceFolder, SaysHowVectorsArePooled) {
  agree(path(), "mean");
  const auto engine = engine_of(path(), {}, "cpu").value();
  EXPECT_TRUE(engine->info().normalise);
  EXPECT_EQ(engine->info().task, Task::embed);
  EXPECT_EQ(engine->info().max_model_len, 290);
}

TEST_P(SentenceFolder, WhatIsNotDoneIsRefused) {
  pooling(R"({"pooling_mode_max_tokens": true})");
  EXPECT_THAT(error(), testing::HasSubstr("one way of pooling of cls, mean and lasttoken"));
  pooling(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  EXPECT_THAT(error(), testing::HasSubstr("one way of pooling"));
  pooling(R"({"pooling_mode_cls_token": true})");
  EXPECT_EQ(error(), "none");
  modules(R"({"type": "sentence_transformers.models.Dense", "path": "2_Dense"})");
  EXPECT_THAT(error(), testing::HasSubstr("models.Dense"));
  modules(R"({"type": "sentence_transformers.models.Pooling", "path": "../elsewhere"})");
  EXPECT_THAT(error(), testing::HasSubstr("leads out of the folder"));
  modules(R"({"path": ""})");
  EXPECT_THAT(error(), testing::HasSubstr("type is missing"));
}

TEST(EncoderRequests, AreCheckedAgainstTheModel) {
  const auto engine = engine_of(std::string(kRoot) + "bert", {}, "cpu").value();
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
  EXPECT_THAT(refusal(Task::embed, 321), testing::HasSubstr("the model reads 320"));
  EXPECT_EQ(refusal(Task::embed, 320), "none");
}

TEST(EncoderRunner, IsWhatTheModelIsMadeFor) {
  const auto encoder = engine_of(std::string(kRoot) + "bert", {}, "cpu", "generate");
  ASSERT_FALSE(encoder.has_value());
  EXPECT_EQ(encoder.error().field, "runner");
  // A model that continues texts gives the last token's vector when it is asked for vectors.
  const auto engine = engine_of("tests/data/models/qwen3", {}, "cpu", "pooling");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->info().task, Task::embed);
  std::vector<TokenId> ids(40);
  std::iota(ids.begin(), ids.end(), 3);
  const Text texts[] = {{.ids = ids, .second = {}, .expected = {}},
                        {.ids = {ids.begin(), ids.begin() + 9}, .second = {}, .expected = {}}};
  const auto together = pooled(**engine, texts);
  EXPECT_EQ(together[0].size(), static_cast<std::size_t>((*engine)->info().pooled_size));
  EXPECT_EQ(together[1], pooled(**engine, std::span(texts).subspan(1))[0]);
  EXPECT_NE(together[0], together[1]);
}

}  // namespace
}  // namespace octavo
