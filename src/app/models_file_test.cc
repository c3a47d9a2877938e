#include "app/models_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

using Flags = std::vector<std::string>;

Result<std::vector<ListedModel>> read(const std::string& text) {
  const ScratchDirectory folder;
  const auto path = folder.path() / "models.yaml";
  std::ofstream(path) << text;
  return read_models(path);
}

TEST(ModelsFile, AnEntryHasFlagsAndKeysOfTheTable) {
  const auto models = read(
      "models:\n"
      "- {model: org/a, served-model-name: [chat, a], pinned: true, max_model_len: 32k, enable-lora: true}\n"
      "- {model: org/b, preload: true, min-idle: 3, idle_timeout: 60}\n");
  ASSERT_TRUE(models) << models.error().message;
  ASSERT_EQ(models->size(), 2u);
  EXPECT_EQ((*models)[0].flags, (Flags{"--model=org/a", "--served-model-name", "chat", "a",
                                       "--max-model-len=32k", "--enable-lora=true"}));
  EXPECT_TRUE((*models)[0].pinned);
  EXPECT_FALSE((*models)[0].preload);
  EXPECT_EQ((*models)[1].flags, Flags{"--model=org/b"});
  EXPECT_TRUE((*models)[1].preload);
  EXPECT_EQ((*models)[1].min_idle_s, 3);
  EXPECT_EQ((*models)[1].idle_timeout_s, 60);
}

TEST(ModelsFile, ErrorsNameTheKey) {
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"models: []", "at least one model"},
           {"- model: a", "list `models`"},
           {"models: [a]", "model 1 of the list must be a mapping"},
           {"models: [{model: a}, {pinned: true}]", "model 2 of the list must have the key `model`"},
           {"models: [{model: a, pinned: 3}]", "pinned must be true or false"},
           {"models: [{model: a, min-idle: -1}]", "min-idle must be a number of seconds"},
           {"models: [{model: a}]\nport: 1", "no other key"}}) {
    const auto models = read(text);
    ASSERT_FALSE(models) << text;
    EXPECT_EQ(models.error().field, "models");
    EXPECT_NE(models.error().message.find(part), std::string::npos) << models.error().message;
  }
}

TEST(ModelsFile, AFolderOfModels) {
  const ScratchDirectory folder;
  EXPECT_FALSE(read_models(folder.path()));
  std::filesystem::create_directory(folder.path() / "b-1.5");
  std::ofstream(folder.path() / "b-1.5" / "config.json") << "{}";
  std::filesystem::create_directory(folder.path() / "no-model");
  for (const char* name :
       {"a-Q4_0.gguf", "mmproj-a-F16.gguf", "c-00001-of-00002.gguf", "c-00002-of-00002.gguf", "readme.md"})
    std::ofstream(folder.path() / name) << "";
  const auto models = read_models(folder.path());
  ASSERT_TRUE(models) << models.error().message;
  ASSERT_EQ(models->size(), 3u);
  EXPECT_EQ((*models)[0].flags.back(), "--served-model-name=a-Q4_0");
  EXPECT_EQ((*models)[1].flags.front(), "--model=" + (folder.path() / "b-1.5").string());
  EXPECT_EQ((*models)[1].flags.back(), "--served-model-name=b-1.5");
  EXPECT_EQ((*models)[2].flags.back(), "--served-model-name=c-00001-of-00002");
}

}  // namespace
}  // namespace octavo
