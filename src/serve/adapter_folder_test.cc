#include "serve/adapter_folder.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/testing/scratch_directory.h"
#include "serve/fake_engine.h"
#include "serve/test_tokenizer.h"

namespace octavo {
namespace {

constexpr const char* kConfig = R"({"peft_type":"LORA","base_model_name_or_path":"org/model"})";

class AdapterFolderTest : public testing::Test {
 protected:
  AdapterFolderTest() {
    EXPECT_TRUE(AdapterFolder::open(folder_.path().string(), {"demo", "org/model"}, *service_));
    write("sql", kConfig);
  }
  void write(const std::string& name, std::string_view config) {
    folder_.write(name + "/adapter_config.json", config);
    folder_.write(name + "/adapter_model.safetensors", "weights");
  }
  Result<bool> offers(const std::string& name) { return service_->adapters->offers(name); }
  void end(std::size_t load, const Result<>& result) { engine_.loads.at(load).second(result); }

  ScratchDirectory folder_;
  FakeEngine engine_{[](const Request&, int) { return Script{}; }};
  Tokenizer tokenizer_ = byte_tokenizer();
  std::shared_ptr<Service> service_ = [this] {
    ServeOptions options;
    options.rules.model_names = {"demo"};
    return std::make_shared<Service>(engine_, tokenizer_, nullptr, nullptr, std::move(options));
  }();
};

TEST_F(AdapterFolderTest, ItMustBeThere) {
  const auto none = AdapterFolder::open((folder_ / "nowhere").string(), {}, *service_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, "VLLM_LORA_RESOLVER_CACHE_DIR");
}

TEST_F(AdapterFolderTest, WhatIsThereIsLoadedWhenItIsNamed) {
  write("team/poet", R"({"peft_type":"LORA","base_model_name_or_path":"demo"})");
  EXPECT_EQ(offers("sql"), true);
  EXPECT_EQ(offers("team/poet"), true);
  ASSERT_EQ(engine_.loads.size(), 2U);
  EXPECT_EQ(engine_.loads[1].first.name, "team/poet");
  EXPECT_EQ(engine_.loads[1].first.path, (std::filesystem::canonical(folder_.path()) / "team/poet").string());
  EXPECT_EQ(service_->adapters->find("sql")->parent, "demo");
  end(0, {});
  EXPECT_EQ(offers("sql"), true);
  EXPECT_EQ(engine_.loads.size(), 2U);
}

TEST_F(AdapterFolderTest, ManyAtOnceLoadItOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_EQ(offers("sql"), true); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine_.loads.size(), 1U);
}

TEST_F(AdapterFolderTest, NoNameLeadsOutOfIt) {
  const ScratchDirectory outside;
  outside.write("adapter_config.json", kConfig);
  std::filesystem::create_directory_symlink(outside.path(), folder_ / "link");
  folder_.write("adapter_config.json", kConfig);
  const std::string beside = "../" + outside.path().filename().string();
  const std::string twisted = "sql/../../" + outside.path().filename().string();
  for (const std::string& name :
       {outside.path().string(), beside, twisted, std::string("link"), std::string("..")})
    EXPECT_EQ(offers(name), false) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string("./sql"), std::string("sql/"), std::string("sql/."),
        std::string("sql//"), std::string("a/../sql"), std::string("sql\0x", 5), std::string(300, 'x')})
    EXPECT_EQ(offers(name), false) << name;
  EXPECT_TRUE(engine_.loads.empty());
}

TEST_F(AdapterFolderTest, OnlyWhatIsOfThisModel) {
  write("other", R"({"peft_type":"LORA","base_model_name_or_path":"another/model"})");
  write("ia3", R"({"peft_type":"IA3","base_model_name_or_path":"demo"})");
  write("silent", R"({"peft_type":"LORA"})");
  write("empty", R"({"peft_type":"LORA","base_model_name_or_path":""})");
  write("number", R"({"peft_type":1,"base_model_name_or_path":2})");
  write("broken", "{");
  write("list", "[]");
  write("large", kConfig + std::string(2 << 20, ' '));
  std::filesystem::create_directories(folder_ / "folder/adapter_config.json");
  for (const char* name :
       {"other", "ia3", "silent", "empty", "number", "broken", "list", "large", "folder", "nobody"})
    EXPECT_EQ(offers(name), false) << name;
  EXPECT_TRUE(engine_.loads.empty());
}

TEST_F(AdapterFolderTest, WhatCannotBeLoadedIsNotReadAgainUntilItChanges) {
  EXPECT_EQ(offers("sql"), true);
  end(0, failure(ErrorCode::corrupt, "NaN in it"));
  EXPECT_FALSE(service_->adapters->find("sql"));
  for (int i = 0; i < 2; ++i) {
    const auto refused = offers("sql");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(refused.error().message,
              "the folder of the LoRA adapter exists, but cannot be loaded: NaN in it");
  }
  EXPECT_EQ(engine_.loads.size(), 1U);
  const auto file = folder_ / "sql/adapter_model.safetensors";
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + std::chrono::hours(1));
  EXPECT_EQ(offers("sql"), true);
  EXPECT_EQ(engine_.loads.size(), 2U);
}

TEST_F(AdapterFolderTest, WhatFailsForAMomentIsTriedAgain) {
  EXPECT_EQ(offers("sql"), true);
  end(0, failure(ErrorCode::unavailable, "asleep"));
  EXPECT_EQ(offers("sql"), true);
  EXPECT_EQ(engine_.loads.size(), 2U);
}

TEST_F(AdapterFolderTest, AnotherOneOfThatNameStays) {
  EXPECT_EQ(offers("sql"), true);
  service_->offer_adapter({.name = "sql", .path = "/elsewhere", .parent = {}});
  end(0, failure(ErrorCode::not_found, "it was replaced"));
  EXPECT_EQ(service_->adapters->find("sql")->path, "/elsewhere");
}

}  // namespace
}  // namespace octavo
