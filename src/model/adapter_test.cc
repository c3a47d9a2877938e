// LoRA adapters against transformers and PEFT: tests/data/adapters, made by tools/goldens/make_adapter_goldens.py.
#include "model/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_directory.h"
#include "kernels/backends.h"
#include "model/golden.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kAdapters = "tests/data/adapters";
constexpr int kMaxRank = 8;

std::unique_ptr<Model> load_base(const std::string& name, Backend& backend) {
  return Model::load(std::string(golden::kModels) + "/" + name, backend,
                     {.dtype = ModelDType::float32, .threads = 2})
      .value();
}

Adapter prepared(const AdapterReader& reader, const AdapterFile& file, Backend& backend) {
  Adapter adapter(reader.linears());
  for (const AdapterFile::Change& change : file.changes)
    adapter[change.linear] = reader.prepare(change, backend).value();
  return adapter;
}

class AdapterGolden : public testing::TestWithParam<std::string> {};

// A case is named like its base model.
TEST_P(AdapterGolden, LogitsAreThoseOfPeft) {
  const golden::Golden golden = golden::read(GetParam(), kAdapters);
  std::vector<Backend> backends;
  backends.push_back(make_reference_backend());
  backends.push_back(make_cpu_backend({.threads = 2, .isa = {}}).value());
  if (auto cuda = make_cuda_backend()) backends.push_back(std::move(*cuda));
  for (Backend& backend : backends) {
    SCOPED_TRACE(backend.name);
    const auto model = load_base(GetParam(), backend);
    const AdapterReader reader(model->spec, model->activation, kMaxRank);
    const AdapterFile file = reader.read(golden.directory).value();
    const Adapter adapter = prepared(reader, file, backend);
    const auto run = [&](const std::vector<int>& chunks) {
      return golden::run(*model, backend, golden.ids, chunks, {.dtype = model->activation}, {&adapter, kMaxRank})
          .value();
    };
    const auto whole = run({static_cast<int>(golden.ids.size())});
    const float difference = golden::max_difference(whole, golden.logits);
    fmt::print("max |logit difference| {:<15} {:<10} {:.1e}\n", golden.name, backend.name, difference);
    EXPECT_LE(difference, 1e-4F);
    EXPECT_EQ(whole, run({13, 1, 2, 16}));
    // The adapter is to change something.
    const auto base = golden::run(*model, backend, golden.ids, {16}, {.dtype = model->activation}).value();
    EXPECT_GT(golden::max_difference(base, golden.logits), 0.1F);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families, AdapterGolden, testing::ValuesIn(golden::names(kAdapters)), test_name);

TEST(AdapterGoldenData, IsThere) { EXPECT_GE(golden::names(kAdapters).size(), 5u); }

// A copy of a golden adapter to damage.
class AdapterErrors : public testing::Test {
 protected:
  AdapterErrors() { fs::copy(std::string(kAdapters) + "/llama-f32", directory_.path()); }

  void replace(const std::string& file, std::string_view from, std::string_view to) {
    std::ifstream in(directory_ / file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    directory_.write(file, text);
  }
  std::string error(int max_rank = kMaxRank) {
    const AdapterReader reader(model_->spec, DType::f32, max_rank);
    const auto file = reader.read(directory_.path());
    return file ? "read" : file.error().message;
  }

  ScratchDirectory directory_;
  Backend backend_ = make_reference_backend();
  std::unique_ptr<Model> model_ = load_base("llama-f32", backend_);
};

TEST_F(AdapterErrors, NameWhatIsWrong) {
  EXPECT_EQ(error(), "read");
  EXPECT_THAT(error(3), HasSubstr("r is 4, the server takes at most 3"));
  fs::remove(directory_ / "adapter_model.safetensors");
  EXPECT_THAT(error(), HasSubstr("has no adapter_model.safetensors"));
}

TEST_F(AdapterErrors, UnsupportedKinds) {
  replace("adapter_config.json", R"("use_dora": false)", R"("use_dora": true)");
  EXPECT_THAT(error(), HasSubstr("use_dora = true is not supported"));
}

TEST_F(AdapterErrors, SavedModules) {
  replace("adapter_config.json", R"("modules_to_save": null)", R"("modules_to_save": ["lm_head"])");
  EXPECT_THAT(error(), HasSubstr(R"(modules_to_save = ["lm_head"] is not supported)"));
}

TEST_F(AdapterErrors, OtherRankThanTheConfiguration) {
  replace("adapter_config.json", R"("r": 4)", R"("r": 5)");
  EXPECT_THAT(error(), HasSubstr("and r = 5 ask for"));
}

TEST_F(AdapterErrors, AnotherBaseModel) {
  replace("adapter_model.safetensors", "layers.0.mlp.down_proj.lora_A", "layers.7.mlp.down_proj.lora_A");
  EXPECT_THAT(error(), HasSubstr("model.layers.0.mlp.down_proj.lora_A.weight is missing"));
  replace("adapter_model.safetensors", "layers.0.mlp.down_proj.lora_B", "layers.7.mlp.down_proj.lora_B");
  EXPECT_THAT(error(), HasSubstr("model.layers.7.mlp.down_proj is no linear layer of the base model"));
}

TEST_F(AdapterErrors, NotANumber) {
  std::ifstream in(directory_ / "adapter_model.safetensors", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));
  directory_.write("adapter_model.safetensors", bytes);
  EXPECT_THAT(error(), HasSubstr("NaN"));
}

}  // namespace
}  // namespace octavo
