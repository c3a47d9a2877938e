#include "model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "kernels/backends.h"
#include "model/config.h"
#include "model/inspect.h"
#include "model/testing/golden.h"
#include "weights/safetensors_writer.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A copy of a golden checkpoint, whose files the tests damage.
class ModelLoad : public testing::Test {
 protected:
  explicit ModelLoad(const std::string& model = "llama-f32") {
    fs::copy("tests/data/models/" + model, directory_.path());
  }

  void replace(const std::string& file, std::string_view from, std::string_view to) {
    std::string text = read_file(directory_ / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    directory_.write(file, text);
  }
  std::string error(const LoadOptions& options = {}) {
    const auto model = Model::load(directory_.path(), backend_, options);
    return model ? "loaded" : model.error().message;
  }

  ScratchDirectory directory_;
  Backend backend_ = make_reference_backend();
};

TEST_F(ModelLoad, ReportsProgress) {
  std::size_t last = 0;
  std::size_t in_all = 0;
  LoadOptions options;
  options.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_GT(done, last);
    last = done;
    in_all = all;
  };
  EXPECT_EQ(error(options), "loaded");
  EXPECT_GT(last, in_all * 9 / 10);
  EXPECT_LE(last, in_all);
}

TEST_F(ModelLoad, MissingTensor) {
  replace("model.safetensors", "model.norm.weight", "model.morn.weight");
  EXPECT_THAT(error(), HasSubstr("1 of 21 tensors are missing: model.norm.weight"));
}

class ExpertsLoad : public ModelLoad {
 protected:
  ExpertsLoad() : ModelLoad("qwen3_moe") {}
};

TEST_F(ExpertsLoad, AMissingExpertIsNamed) {
  replace("model.safetensors", "layers.0.mlp.experts.1.down_proj", "layers.0.mlp.experts.9.down_proj");
  EXPECT_THAT(error(), HasSubstr("tensors are missing: model.layers.0.mlp.experts.1.down_proj.weight"));
}

TEST_F(ModelLoad, UnusedTensor) {
  replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  EXPECT_THAT(error(), HasSubstr("9 tensors do not belong to this architecture: model.layers.1."));
}

TEST_F(ModelLoad, WrongShape) {
  replace("config.json", "\"vocab_size\": 128", "\"vocab_size\": 127");
  EXPECT_THAT(error(), HasSubstr("has shape [128, 48], but the configuration requires [127, 48]"));
}

TEST_F(ModelLoad, NotANumber) {
  std::string bytes = read_file(directory_ / "model.safetensors");
  const std::uint32_t nan = 0x7fc00000;
  std::memcpy(bytes.data() + bytes.size() - 4, &nan, 4);
  directory_.write("model.safetensors", bytes);
  EXPECT_THAT(error(), HasSubstr("tensor model.norm.weight contains NaN or infinity"));
  std::memset(bytes.data() + bytes.size() - 4, 0, 4);
  std::memcpy(bytes.data() + bytes.size() - 4000, &nan, 4);
  directory_.write("model.safetensors", bytes);
  EXPECT_THAT(error(), HasSubstr("contains NaN or infinity"));
}

TEST_F(ModelLoad, LengthBeyondTheModel) {
  EXPECT_THAT(error({.max_model_len = 257}),
              HasSubstr("must be from 1 to 256 tokens for this model, got 257"));
  EXPECT_THAT(error({.max_model_len = 0}), HasSubstr("for this model, got 0"));
  EXPECT_EQ(error({.max_model_len = 256}), "loaded");
}

TEST_F(ModelLoad, NoSuchDirectory) {
  const auto model = Model::load("no/such/place", backend_);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::not_found);
  EXPECT_THAT(model.error().message, HasSubstr("no/such/place does not exist"));
}

// A tensor's data may begin at any byte. The test makes the header one space longer.
TEST_F(ModelLoad, MisalignedData) {
  std::string bytes = read_file(directory_ / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  bytes.insert(8 + length, " ");
  ++length;
  std::memcpy(bytes.data(), &length, 8);
  directory_.write("model.safetensors", bytes);
  const golden::Golden golden = golden::read("llama-f32");
  const auto model = Model::load(directory_.path(), backend_);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto logits = golden::run(**model, backend_, golden.ids, {40}, {.dtype = DType::f32});
  EXPECT_LE(golden::max_difference(*logits, golden.logits), 1e-4F);
}

TEST_F(ModelLoad, ConvertsToTheFormatAskedFor) {
  // the reference backend keeps everything in f32
  Backend cpu = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const auto bytes_as = [&](ModelDType dtype) {
    const auto model = Model::load(directory_.path(), cpu, {.dtype = dtype});
    EXPECT_EQ((*model)->activation, dtype == ModelDType::bfloat16 ? DType::bf16 : DType::f32);
    return (*model)->network.ends->embedding.weight->bytes();
  };
  EXPECT_EQ(bytes_as(ModelDType::automatic), 128u * 48 * 4);
  EXPECT_EQ(bytes_as(ModelDType::float32), 128u * 48 * 4);
  EXPECT_EQ(bytes_as(ModelDType::bfloat16), 128u * 48 * 2);
  EXPECT_EQ(bytes_as(ModelDType::float16), 128u * 48 * 2);
}

TEST_F(ModelLoad, BeyondTheFormatAskedFor) {
  std::string bytes = read_file(directory_ / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  const float large = 1e6F;  // finite in f32 and bf16, infinite in f16
  std::memcpy(bytes.data() + 8 + header, &large, 4);
  directory_.write("model.safetensors", bytes);
  EXPECT_EQ(error(), "loaded");
  EXPECT_EQ(error({.dtype = ModelDType::bfloat16}), "loaded");
  EXPECT_THAT(error({.dtype = ModelDType::float16}), HasSubstr("contains NaN or infinity in f16"));
}

// Only the RoPE angles of a step's tokens are computed. A table for ten million positions would need
// gigabytes.
TEST_F(ModelLoad, TenMillionPositionsCostNoMemory) {
  replace("config.json", "\"max_position_embeddings\": 256", "\"max_position_embeddings\": 10000000");
  const auto model = Model::load(directory_.path(), backend_);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->max_model_len, 10'000'000);
  EXPECT_LT((*model)->weight_bytes, std::size_t{1} << 20);
}

// Heads of open_llama_3b have 100 elements, so they are refused as well.
TEST_F(ModelLoad, HeadsOfOtherThanAMultipleOfEightAreRefusedByInspectToo) {
  replace("config.json", "\"head_dim\": 16", "\"head_dim\": 4");  // the sizes of the matrices do not change
  replace("config.json", "\"num_attention_heads\": 3", "\"num_attention_heads\": 12");
  replace("config.json", "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 4");
  EXPECT_THAT(error(), HasSubstr("4 is not a multiple of 8"));
  const auto text = inspect(directory_.path(), backend_);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().field, "head_dim");
}

TEST_F(ModelLoad, InspectTellsWhatThereIs) {
  const auto text = inspect(directory_.path(), backend_);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("LlamaForCausalLM"));
  EXPECT_THAT(*text, HasSubstr("2 x 3 query and 1 key heads of 16"));
  EXPECT_THAT(*text, HasSubstr("decode at context 256"));
  EXPECT_THAT(*text, testing::Not(HasSubstr(" 0.0 "))) << "small sizes have small units";
}

// The vector q_norm is stored with two dimensions, so join_packed() accepts it as an fp8 matrix.
TEST(VectorsWithRows, AreNotReadFromCodes) {
  constexpr std::string_view kNorm = "model.layers.0.self_attn.q_norm.weight";
  const ScratchDirectory directory;
  const std::string config = read_file("tests/data/models/cohere/config.json");
  directory.write("config.json", R"({"quantization_config": {"quant_method": "fp8"},)" + config.substr(1));
  const Checkpoint checkpoint = Checkpoint::open("tests/data/models/cohere").value();
  ASSERT_EQ(checkpoint.find(kNorm)->shape.size(), 2u);
  const std::string scale_name = std::string(kNorm) + "_scale";
  std::vector<TensorEntry> entries{{scale_name, "F32", {1}, sizeof(float)}};
  std::vector<std::byte> codes;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    entries.push_back({tensor.name, tensor.format, tensor.shape, tensor.bytes.size()});
    if (tensor.name != kNorm) continue;
    codes.resize(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]));
    entries.back().format = "F8_E4M3";
    entries.back().bytes = codes.size();
  }
  SafetensorsWriter writer = SafetensorsWriter::create(directory / "model.safetensors", entries).value();
  for (const StoredTensor& tensor : checkpoint.tensors())
    ASSERT_TRUE(writer.write(tensor.name, tensor.name == kNorm ? codes : tensor.bytes));
  const float scale = 1;
  ASSERT_TRUE(writer.write(scale_name, std::as_bytes(std::span(&scale, 1))));
  ASSERT_TRUE(writer.finish());
  Backend backend = make_reference_backend();
  const auto model = Model::load(directory.path(), backend);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message,
              HasSubstr("q_norm.weight is fp8, but a vector must be F32, F16 or BF16"));
}

TEST(DummyWeights, OfEveryNetworkThatFilesAreOf) {
  Backend backend = make_reference_backend();
  int networks = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("tests/data/models")) {
    const auto config = Config::load(entry.path());
    if (config && config->has("quantization_config")) continue;  // dummy weights are never quantised
    const ScratchDirectory directory;
    for (const char* file : {"config.json", "params.json"})
      if (fs::exists(entry.path() / file)) fs::copy(entry.path() / file, directory / file);
    const auto model = Model::load(directory.path(), backend, {.dummy = true});
    ASSERT_TRUE(model) << entry.path() << ": " << model.error().message;
    const auto real = Model::load(entry.path(), backend, {.dtype = ModelDType::bfloat16});
    EXPECT_EQ((*model)->weight_bytes, (*real)->weight_bytes) << entry.path();
    ++networks;
  }
  EXPECT_GT(networks, 100);
}

// The model has 412 billion parameters. The loader must detect that memory does not suffice before the system
// kills the process.
TEST(Weights, MoreThanThereIsMemoryForAreRefusedWithFigures) {
  Backend backend = make_reference_backend();
  const auto available = static_cast<double>(backend.device->available_bytes());
  if (available == 0 || available > 800e9) GTEST_SKIP() << available << " bytes of memory";
  const ScratchDirectory directory;
  directory.write("config.json", R"({"architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 4096, "vocab_size": 128,
      "num_attention_heads": 32, "num_key_value_heads": 2, "num_hidden_layers": 16, "num_experts": 512,
      "moe_intermediate_size": 4096, "max_position_embeddings": 128})");
  const auto model = Model::load(directory.path(), backend, {.dummy = true});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(model.error().message, HasSubstr("the weights need 825."));
  EXPECT_THAT(model.error().message,
              HasSubstr("GB of memory are available; with --quantization int4 they need 206"));
}

TEST_F(ModelLoad, DummyWeightsAreOfPlainFolders) {
  const LoadOptions dummy{.dummy = true};
  fs::remove(directory_ / "model.safetensors");
  EXPECT_EQ(error(dummy), "loaded");
  replace("config.json", "{", R"({"quantization_config": {"quant_method": "fp8"},)");
  EXPECT_THAT(error(dummy), HasSubstr("dummy weights are not quantised, but config.json has fp8"));
  const auto gguf = Model::load("tests/data/gguf/bloom/model.gguf", backend_, dummy);
  EXPECT_THAT(gguf.error().message, HasSubstr("not a GGUF file"));
}

TEST(EmbedScale, IsRoundedToTheFormatOfTheWeights) {
  Backend backend = make_reference_backend();
  const auto scale = [&](ModelDType dtype) {
    return Model::load("tests/data/models/gemma3-multimodal", backend, {.dtype = dtype})
        .value()
        ->spec.embedding.scale;
  };
  EXPECT_EQ(scale(ModelDType::automatic), 6.9375f);
  EXPECT_EQ(scale(ModelDType::float16), to_f32(to_f16(std::sqrt(48.0f))));
  EXPECT_EQ(scale(ModelDType::float32), std::sqrt(48.0f));
}

TEST_F(ModelLoad, ShapesThatComeFromAbsentFieldsSaySo) {
  replace("config.json", "\"intermediate_size\"", "\"intermediate_size_\"");
  EXPECT_THAT(error(),
              HasSubstr("config.json has no value for intermediate_size, so transformers' defaults"));
}

}  // namespace
}  // namespace octavo
