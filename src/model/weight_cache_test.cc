#include "model/weight_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

class WeightCacheTest : public testing::Test {
 protected:
  // Copies the model, because tests change its files.
  void use(const std::string& name, const std::string& root = golden::kModels) {
    golden_ = golden::read(name, root);
    fs::remove_all(directory_ / "model");
    fs::copy(golden_.directory, directory_ / "model");
  }
  std::unique_ptr<Model> load(LoadOptions options = {}) {
    options.threads = 2;
    options.max_model_len = golden_.max_model_len;
    options.weight_cache_dir = folder_;
    auto model = Model::load(directory_ / "model", backend_, options);
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    return model ? *std::move(model) : nullptr;
  }
  // Loads the model and waits until its file is written. Returns its logits.
  std::vector<float> load_and_write(std::size_t files, const LoadOptions& options = {}) {
    const auto model = load(options);
    EXPECT_NE(model->converted_writer, nullptr);
    EXPECT_TRUE(eventually([&] { return cached().size() == files; }));
    return logits_of(*model);
  }
  std::vector<float> logits_of(const Model& model) {
    return golden::run(model, backend_, golden_.ids, {5}, {.dtype = model.activation}).value();
  }
  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder_, failed))
      if (entry.path().extension() == ".octavo-weights") files.push_back(entry.path());
    return files;
  }
  void expect_mapped(const std::vector<float>& logits, const LoadOptions& options = {}) {
    const auto model = load(options);
    EXPECT_NE(model->converted, nullptr);
    EXPECT_EQ(model->converted_writer, nullptr);
    EXPECT_EQ(logits_of(*model), logits);
  }

  ScratchDirectory directory_;
  const std::string folder_ = (directory_ / "cache").string();
  Backend backend_ = make_cpu_backend({.threads = 2, .isa = {}}).value();
  golden::Golden golden_;
};

TEST_F(WeightCacheTest, MappedMatricesGiveTheSameLogits) {
  for (const std::string name : {"llama-f32", "qwen3_moe", "gemma3-multimodal", "deepseek_v3"}) {
    SCOPED_TRACE(name);
    use(name);
    const std::size_t before = cached().size();
    expect_mapped(load_and_write(before + 1));
  }
}

TEST_F(WeightCacheTest, HasAFileForEachChoiceOfOptions) {
  use("llama");
  const auto plain = load_and_write(1);
  const auto int8 = load_and_write(2, {.quantization = Encoding::int8});
  const auto f32 = load_and_write(3, {.dtype = ModelDType::float32});
  EXPECT_NE(plain, int8);
  EXPECT_NE(plain, f32);
  expect_mapped(plain);
  expect_mapped(int8, {.quantization = Encoding::int8});
  expect_mapped(f32, {.dtype = ModelDType::float32});
}

TEST_F(WeightCacheTest, IsNotUsedAfterAChangeOfTheModel) {
  use("llama-f32");
  const auto before = load_and_write(1);
  const fs::path config = directory_ / "model" / "config.json";
  fs::last_write_time(config, fs::last_write_time(config) + std::chrono::hours(1));
  EXPECT_EQ(load_and_write(2), before);
  // The same sizes and names, but other numbers.
  const fs::path weights = directory_ / "model" / "model.safetensors";
  std::fstream file(weights, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-64, std::ios::end);
  file.write(std::string(64, '\0').data(), 64);
  file.close();
  const auto after = load_and_write(3);
  EXPECT_NE(after, before);
  expect_mapped(after);
}

TEST_F(WeightCacheTest, ADamagedFileIsWrittenAgain) {
  use("llama-f32");
  const auto logits = load_and_write(1);
  const fs::path path = cached().front();
  const auto size = fs::file_size(path);
  for (const std::uintmax_t left : {std::uintmax_t{0}, size - 4096}) {
    SCOPED_TRACE(left);
    fs::resize_file(path, left);
    const auto model = load();
    ASSERT_NE(model->converted_writer, nullptr);
    EXPECT_EQ(logits_of(*model), logits);
    ASSERT_TRUE(eventually([&] { return fs::file_size(path) == size; }));
    expect_mapped(logits);
  }
}

TEST_F(WeightCacheTest, AFolderThatCannotBeWrittenCostsNothing) {
  use("llama-f32");
  directory_.write("cache", "a file, not a folder");
  const auto model = load();
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->converted_writer, nullptr);
}

// A user's other files, and files that a running server writes, stay.
TEST_F(WeightCacheTest, OldUnfinishedFilesAreRemoved) {
  use("llama-f32");
  directory_.write("cache/old.octavo-part", "x");
  directory_.write("cache/new.octavo-part", "x");
  directory_.write("cache/other", "x");
  fs::last_write_time(directory_ / "cache/old.octavo-part",
                      fs::file_time_type::clock::now() - std::chrono::hours(25));
  load_and_write(1);
  EXPECT_FALSE(fs::exists(directory_ / "cache/old.octavo-part"));
  EXPECT_TRUE(fs::exists(directory_ / "cache/new.octavo-part"));
  EXPECT_TRUE(fs::exists(directory_ / "cache/other"));
}

}  // namespace
}  // namespace octavo
