// Compares LoRA adapters in tests/data/adapters with transformers and PEFT.
// tools/goldens/make_adapter_goldens.py makes the data.
#include "model/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "kernels/backends.h"
#include "model/adapter_config.h"
#include "model/testing/golden.h"
#include "tensor/mapped_file.h"
#include "weights/safetensors.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kAdapters = "tests/data/adapters";
constexpr int kMaxRank = 8;

std::unique_ptr<Model> load_base(const std::string& name, Backend& backend) {
  return Model::load(golden::adapter_case(name).base, backend, {.dtype = ModelDType::float32, .threads = 2})
      .value();
}

Adapter prepared(const AdapterReader& reader, const AdapterFile& file, Backend& backend) {
  Adapter adapter(reader.linears());
  for (const AdapterFile::Change& change : file.changes)
    adapter[change.linear] = reader.prepare(change, backend).value();
  return adapter;
}

class AdapterGolden : public testing::TestWithParam<std::string> {};

// The name of a case is the name of its base model.
TEST_P(AdapterGolden, LogitsAreThoseOfPeft) {
  const golden::Golden golden = golden::read(GetParam(), kAdapters);
  std::vector<Backend> backends;
  backends.push_back(make_reference_backend());
  backends.push_back(make_cpu_backend({.threads = 2, .isa = {}}).value());
  if (auto cuda = make_cuda_backend()) backends.push_back(std::move(*cuda));
  for (Backend& backend : backends) {
    SCOPED_TRACE(backend.name);
    const auto model = load_base(GetParam(), backend);
    const AdapterReader reader(model->spec, model->activation, kMaxRank,
                               backend.device->shares_host_memory());
    const auto file = reader.read(golden::adapter_case(golden.name).adapter);
    if (!file && !backend.device->shares_host_memory()) {
      EXPECT_THAT(file.error().message, HasSubstr("adapters of single experts work only on CPUs"));
      continue;
    }
    const Adapter adapter = prepared(reader, file.value(), backend);
    const auto run = [&](const std::vector<int>& chunks) {
      return golden::run(*model, backend, golden.ids, chunks, {.dtype = model->activation}, {&adapter, kMaxRank})
          .value();
    };
    const auto whole = run({static_cast<int>(golden.ids.size())});
    const float difference = golden::max_difference(whole, golden.logits);
    fmt::print("max |logit difference| {:<15} {:<10} {:.1e}\n", golden.name, backend.name, difference);
    EXPECT_LE(difference, 1e-4F);
    EXPECT_EQ(whole, run({13, 1, 2, 16}));
    // The adapter must change the logits.
    const auto base = golden::run(*model, backend, golden.ids, {16}, {.dtype = model->activation}).value();
    EXPECT_GT(golden::max_difference(base, golden.logits), 0.1F);
  }
}

// Writes a copy of the base model in F32, in which each changed W is replaced by W + scale B A.
void write_merged(const std::string& base, const std::string& adapter, const ScratchDirectory& to) {
  const AdapterConfig config = load_adapter_config(adapter).value();
  const MappedFile file = MappedFile::open(adapter + "/adapter_model.safetensors").value();
  const std::vector<StoredTensor> changes = parse_safetensors(file.bytes(), adapter).value();
  const auto change = [&](const std::string& name, std::string_view part) {
    const std::string full = fmt::format("base_model.model.{}.lora_{}.weight", name, part);
    const auto found = std::ranges::find(changes, full, &StoredTensor::name);
    return found != changes.end() ? &*found : nullptr;
  };
  const Checkpoint checkpoint = Checkpoint::open(base).value();
  boost::json::object header;
  std::string data;
  std::size_t changed = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < elements; ++i) numbers.push_back(number_at(tensor, i));
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    if (const StoredTensor *a = change(module, "A"), *b = change(module, "B");
        a != nullptr && tensor.name.ends_with(".weight")) {
      ++changed;
      const std::int64_t cols = a->shape[1], rank = a->shape[0];
      for (std::int64_t i = 0; i < elements; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < rank; ++k)
          sum += double{number_at(*b, i / cols * rank + k)} * number_at(*a, k * cols + i % cols);
        numbers[static_cast<std::size_t>(i)] += static_cast<float>(config.scale_of(module) * sum);
      }
    }
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", boost::json::value_from(tensor.shape)},
                           {"data_offsets", {begin, data.size()}}};
  }
  ASSERT_EQ(2 * changed, changes.size());
  std::string text = boost::json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  to.write("model.safetensors", std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data);
  fs::copy_file(base + "/config.json", to / "config.json");
}

TEST(Adapter, IsAsGoodAsMergedWeights) {
  for (const std::string name : {"gpt_neox", "llama-f32", "mixtral", "phi3", "qwen2_moe", "qwen3"}) {
    SCOPED_TRACE(name);
    Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
    const golden::Golden golden = golden::read(name, kAdapters);
    const ScratchDirectory folder;
    ASSERT_NO_FATAL_FAILURE(write_merged(std::string(golden::kModels) + "/" + name, golden.directory, folder));
    const LoadOptions options{.dtype = ModelDType::float32, .threads = 2};
    const auto merged = Model::load(folder.path(), backend, options).value();
    const auto model = load_base(name, backend);
    const AdapterReader reader(model->spec, model->activation, kMaxRank,
                               backend.device->shares_host_memory());
    const Adapter adapter = prepared(reader, reader.read(golden.directory).value(), backend);
    const auto run = [&](const Model& of, const golden::TestAdapter& with) {
      return golden::run(of, backend, golden.ids, {16}, {.dtype = of.activation}, with).value();
    };
    const std::vector<float> logits = run(*merged, {});
    const float difference = golden::max_difference(run(*model, {&adapter, kMaxRank}), logits);
    fmt::print("max |logit difference| to merged weights {:<10} {:.1e}\n", name, difference);
    EXPECT_LE(difference, 1e-4F);
    EXPECT_GT(golden::max_difference(run(*model, {}), logits), 0.1F);
  }
}

// The file of torch.save has the same numbers. If both files exist, the reader uses safetensors.
TEST(Adapter, OfATorchFileIsTheSame) {
  Backend backend = make_reference_backend();
  const auto model = load_base("llama-f32", backend);
  const AdapterReader reader(model->spec, model->activation, kMaxRank, true);
  const std::string pickled = "tests/data/torch/adapter", usual = fmt::format("{}/llama-f32", kAdapters);
  const AdapterFile expected = reader.read(usual).value(), read = reader.read(pickled).value();
  ASSERT_EQ(read.changes.size(), expected.changes.size());
  for (std::size_t i = 0; i < read.changes.size(); ++i) {
    EXPECT_EQ(read.changes[i].linear, expected.changes[i].linear);
    EXPECT_EQ(read.changes[i].a, expected.changes[i].a);
    EXPECT_EQ(read.changes[i].b, expected.changes[i].b);
  }
  EXPECT_NE(read.digest, expected.digest);  // the files' bytes differ
  const ScratchDirectory both;
  fs::copy(usual, both.path());
  fs::copy_file(pickled + "/adapter_model.bin", both / "adapter_model.bin");
  EXPECT_EQ(reader.read(both.path()).value().digest, expected.digest);
  both.write("adapter_model.bin", "no pickle");
  fs::remove(both / "adapter_model.safetensors");
  EXPECT_THAT(reader.read(both.path()).error().message,
              HasSubstr("adapter_model.bin: the file was not written by torch.save"));
}

// Query, key and value form one matrix, and gate and up form another one. Each part has a separate B. Rows of
// other parts are not stored as zeros.
TEST(Adapter, LayersThatAreOneMatrixHaveBlocks) {
  Backend backend = make_reference_backend();
  const auto model = load_base("llama-f32", backend);
  const AdapterReader reader(model->spec, model->activation, kMaxRank, true);
  const Adapter adapter =
      prepared(reader, reader.read(golden::read("llama-f32", kAdapters).directory).value(), backend);
  std::vector<std::size_t> counts;
  for (const AdapterChange& change : adapter) {
    if (!change.a) continue;
    counts.push_back(change.blocks.size());
    std::int64_t row = 0;
    for (const AdapterChange::Block& block : change.blocks) {
      EXPECT_EQ(block.b->cols(), kMaxRank);
      EXPECT_EQ(block.first_row, row);
      EXPECT_EQ(block.first_column, (&block - change.blocks.data()) * kMaxRank);
      row += block.b->rows();
    }
    EXPECT_EQ(change.a->rows(), std::ssize(change.blocks) * kMaxRank);
  }
  EXPECT_THAT(counts, testing::IsSupersetOf({std::size_t{3}, std::size_t{2}, std::size_t{1}}));
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families, AdapterGolden, testing::ValuesIn(golden::names(kAdapters)), test_name);

TEST(AdapterGoldenData, IsThere) { EXPECT_GE(golden::names(kAdapters).size(), 5u); }

// A copy of a golden adapter, whose files the tests damage.
class AdapterErrors : public testing::Test {
 protected:
  explicit AdapterErrors(const std::string& name = "llama-f32")
      : AdapterErrors(name, std::string(kAdapters) + "/" + name) {}
  AdapterErrors(const std::string& name, const std::string& adapter) : model_(load_base(name, backend_)) {
    fs::copy(adapter, directory_.path());
  }

  void replace(const std::string& file, std::string_view from, std::string_view to) {
    std::ifstream in(directory_ / file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    directory_.write(file, text);
  }
  // Renames all tensors that begin with `from`. Blanks fill the header if the new name is shorter.
  void rename(std::string_view from, std::string_view to) {
    std::ifstream in(directory_ / "adapter_model.safetensors", std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::string before = fmt::format("\"{}", from);
    const std::string after = std::string(from.size() - to.size(), ' ') + fmt::format("\"{}", to);
    ASSERT_NE(text.find(before), std::string::npos);
    for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos; at += after.size())
      text.replace(at, before.size(), after);
    directory_.write("adapter_model.safetensors", text);
  }
  std::string error(int max_rank = kMaxRank) {
    const AdapterReader reader(model_->spec, DType::f32, max_rank, true);
    const auto file = reader.read(directory_.path());
    return file ? "read" : file.error().message;
  }

  ScratchDirectory directory_;
  Backend backend_ = make_reference_backend();
  std::unique_ptr<Model> model_;
};

TEST_F(AdapterErrors, NameWhatIsWrong) {
  EXPECT_EQ(error(), "read");
  EXPECT_THAT(error(3), HasSubstr("r is 4, but the server accepts at most 3"));
  fs::remove(directory_ / "adapter_model.safetensors");
  EXPECT_THAT(error(), HasSubstr("does not contain adapter_model.safetensors or adapter_model.bin"));
}

TEST_F(AdapterErrors, UnsupportedKinds) {
  replace("adapter_config.json", R"("use_dora": false)", R"("use_dora": true)");
  EXPECT_THAT(error(), HasSubstr("use_dora must not be set to true"));
}

TEST_F(AdapterErrors, SavedModules) {
  replace("adapter_config.json", R"("modules_to_save": null)", R"("modules_to_save": ["lm_head"])");
  EXPECT_THAT(error(), HasSubstr(R"(modules_to_save must not be set to ["lm_head"])"));
}

TEST_F(AdapterErrors, Patterns) {
  const auto with = [&](std::string_view patterns) {
    fs::copy_file(std::string(kAdapters) + "/llama-f32/adapter_config.json", directory_ / "adapter_config.json",
                  fs::copy_options::overwrite_existing);
    replace("adapter_config.json", R"("r": 4)", fmt::format(R"("r": 4, {})", patterns));
    replace("adapter_config.json", "\"rank_pattern\": {}", "\"rank_patterns_before\": {}");
    replace("adapter_config.json", "\"alpha_pattern\": {}", "\"alpha_patterns_before\": {}");
    return error();
  };
  EXPECT_EQ(with(R"("rank_pattern": {"k_proj": 8, "_proj": 2}, "alpha_pattern": {"q_proj": 3.5})"), "read");
  EXPECT_THAT(with(R"("rank_pattern": {"q_proj": 9})"),
              HasSubstr("r is 9, but the server accepts at most 8"));
  EXPECT_THAT(with(R"("rank_pattern": {"self_attn.q_proj": 2})"), HasSubstr("and r = 2 require"));
  EXPECT_THAT(with(R"("rank_pattern": {"q_proj": 1.5})"), HasSubstr(R"(rank_pattern["q_proj"] is 1.5)"));
  EXPECT_THAT(with(R"("alpha_pattern": {"q_proj": "2"})"), HasSubstr(R"(alpha_pattern["q_proj"] is "2")"));
  EXPECT_THAT(with(R"("alpha_pattern": {".*_proj": 2})"), HasSubstr("but must have names of modules"));
  EXPECT_THAT(with(R"("alpha_pattern": [2])"), HasSubstr("alpha_pattern must be an object"));
}

TEST_F(AdapterErrors, OtherRankThanTheConfiguration) {
  replace("adapter_config.json", R"("r": 4)", R"("r": 5)");
  EXPECT_THAT(error(), HasSubstr("and r = 5 require"));
}

TEST_F(AdapterErrors, AnotherBaseModel) {
  replace("adapter_model.safetensors", "layers.0.mlp.down_proj.lora_A", "layers.7.mlp.down_proj.lora_A");
  EXPECT_THAT(error(), HasSubstr("model.layers.0.mlp.down_proj.lora_A.weight is missing"));
  replace("adapter_model.safetensors", "layers.0.mlp.down_proj.lora_B", "layers.7.mlp.down_proj.lora_B");
  EXPECT_THAT(error(), HasSubstr("model.layers.7.mlp.down_proj is not a linear layer of the base model"));
}

// vLLM also accepts names without PEFT's prefix.
TEST_F(AdapterErrors, NamesWithoutWhatPeftWrapsTheModelIn) {
  const AdapterReader reader(model_->spec, DType::f32, kMaxRank, true);
  const AdapterFile usual = reader.read(directory_.path()).value();
  rename("base_model.model.", "");
  const AdapterFile bare = reader.read(directory_.path()).value();
  ASSERT_EQ(bare.changes.size(), usual.changes.size());
  for (std::size_t i = 0; i < usual.changes.size(); ++i) {
    EXPECT_EQ(bare.changes[i].linear, usual.changes[i].linear);
    EXPECT_EQ(bare.changes[i].a, usual.changes[i].a);
    EXPECT_EQ(bare.changes[i].b, usual.changes[i].b);
  }
}

class TowerAdapterErrors : public AdapterErrors {
 protected:
  TowerAdapterErrors() : AdapterErrors("../vision/qwen2_vl", "tests/data/vision/qwen2_vl/adapter") {}
};

// vLLM also ignores tensors of the image encoder.
TEST_F(TowerAdapterErrors, LayersOfTheEncoderOfImagesAreLeftOut) {
  const AdapterReader reader(model_->spec, DType::f32, kMaxRank, true);
  const std::size_t all = reader.read(directory_.path()).value().changes.size();
  const std::string text = "base_model.model.model.language_model.layers.",
                    images = "base_model.model.model.visual.blocks.";
  rename(text + "1.mlp.down_proj", images + "1.mlp.fc2");
  EXPECT_EQ(reader.read(directory_.path()).value().changes.size(), all - 1);
  rename(text + "1.mlp.gate_proj", images + "7.mlp.fc1");
  EXPECT_THAT(error(), HasSubstr("visual.blocks.7.mlp.fc1 is not a linear layer of the base model"));
}

TEST_F(TowerAdapterErrors, NothingButTheEncoder) {
  for (const std::string layer : {"0", "1"})
    for (const auto& [from, to] : {std::pair{"mlp.down_proj", "mlp.fc2"},
                                   {"mlp.gate_proj", "mlp.fc1"},
                                   {"self_attn.q_proj", "attn.qkv"},
                                   {"self_attn.v_proj", "attn.proj"}})
      rename("base_model.model.model.language_model.layers." + layer + "." + from,
             "visual.blocks." + layer + "." + to);
  EXPECT_THAT(error(), HasSubstr("contains no tensors except those of the encoder of images or sound"));
}

class EmbeddingAdapterErrors : public AdapterErrors {
 protected:
  EmbeddingAdapterErrors() : AdapterErrors("mistral") {}
};

// The adapter's file contains base matrices whose vocabulary differs from the model's.
TEST_F(EmbeddingAdapterErrors, AnotherVocabulary) {
  EXPECT_EQ(error(), "read");
  model_->spec.vocab = 127;
  EXPECT_THAT(
      error(),
      HasSubstr("lm_head.base_layer.weight has shape [128, 64], but the base model's tensor has [127, 64]"));
}

TEST_F(EmbeddingAdapterErrors, HalfOfIt) {
  replace("adapter_model.safetensors", "embed_tokens.lora_embedding_A", "embed_tokens.lora_embedding_C");
  EXPECT_THAT(error(), HasSubstr("embed_tokens.lora_embedding_A is missing"));
}

class ExpertAdapterErrors : public AdapterErrors {
 protected:
  explicit ExpertAdapterErrors(const std::string& name = "mixtral") : AdapterErrors(name) {}
};

TEST_F(ExpertAdapterErrors, AnotherExpert) {
  EXPECT_EQ(error(), "read");
  for (const std::string part : {"A", "B"})
    replace("adapter_model.safetensors", "experts.0.w1.lora_" + part, "experts.7.w1.lora_" + part);
  EXPECT_THAT(error(), HasSubstr("experts.7.w1 is not a linear layer of the base model"));
}

TEST_F(ExpertAdapterErrors, WhereTheyAreNotComputed) {
  const AdapterReader reader(model_->spec, DType::f32, kMaxRank, false);
  EXPECT_THAT(reader.read(directory_.path()).error().message,
              HasSubstr("adapters of single experts work only on CPUs"));
}

class AllExpertsAdapterErrors : public ExpertAdapterErrors {
 protected:
  AllExpertsAdapterErrors() : ExpertAdapterErrors("gpt_oss") {}
};

TEST_F(AllExpertsAdapterErrors, OtherRankThanTheConfiguration) {
  EXPECT_EQ(error(), "read");
  replace("adapter_config.json", R"("r": 3)", R"("r": 4)");
  EXPECT_THAT(error(), HasSubstr("and r = 4 require"));
}

TEST_F(AllExpertsAdapterErrors, OneParameterUnderTwoNames) {
  // The second layer gets the first layer's name. Removing the metadata keeps the header's length.
  replace("adapter_model.safetensors", R"("__metadata__":{"format":"pt"},)", std::string(9, ' '));
  for (const std::string part : {"A", "B"})
    replace("adapter_model.safetensors", "layers.1.mlp.experts.base_layer.lora_" + part,
            "layers.0.mlp.experts.base_layer.base_layer.lora_" + part);
  EXPECT_THAT(error(), HasSubstr("has a duplicate under another name"));
}

TEST_F(AdapterErrors, NotANumber) {
  std::ifstream in(directory_ / "adapter_model.safetensors", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));
  directory_.write("adapter_model.safetensors", bytes);
  EXPECT_THAT(error(), HasSubstr("NaN"));
}

TEST(GgufAdapter, BaseModelAndAdapterHaveOneFormat) {
  Backend backend = make_reference_backend();
  const golden::AdapterCase files = golden::adapter_case("llama-gguf"),
                            folders = golden::adapter_case("llama-f32");
  const auto of_file = load_base("llama-gguf", backend), of_folder = load_base("llama-f32", backend);
  const AdapterReader files_reader(of_file->spec, of_file->activation, kMaxRank, true);
  const AdapterReader folders_reader(of_folder->spec, of_folder->activation, kMaxRank, true);
  EXPECT_THAT(files_reader.read(folders.adapter).error().message,
              HasSubstr("is not a GGUF file, but the base model is"));
  EXPECT_THAT(folders_reader.read(files.adapter).error().message,
              HasSubstr("is a GGUF file, but the base model is a folder"));
  EXPECT_THAT(files_reader.read(files.base).error().message, HasSubstr("but must be \"adapter\""));
}

}  // namespace
}  // namespace octavo
