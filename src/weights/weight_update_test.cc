#include "weights/weight_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "weights/checkpoint.h"
#include "weights/testing/safetensors_text.h"

namespace octavo {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class WeightUpdateTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_.write("model.safetensors", safetensors_text({{"a", {1, 2}}, {"b", {3}}, {"c", {4, 5, 6}}}));
    directory_.write("config.json", "{}");
    update_ = WeightUpdate::create(directory_.path()).value();
  }
  Result<bool> add(const std::string& text) { return update_->add_part(bytes(text), 0, text.size()); }
  static float value(const std::string& folder, std::string_view tensor) {
    const auto checkpoint = Checkpoint::open(folder);
    return checkpoint ? number_at(*checkpoint->find(tensor), 0) : -1;
  }

  ScratchDirectory directory_;
  std::unique_ptr<WeightUpdate> update_;
};

TEST_F(WeightUpdateTest, NewValuesBesideTheModels) {
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_TRUE(add(safetensors_text({{"b", {30}}})).value());
  const std::string folder = update_->finish().value();
  EXPECT_EQ(value(folder, "a"), 1);
  EXPECT_EQ(value(folder, "b"), 30);
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(folder) / "config.json"));
  update_->keep();

  // The next update keeps those values of this one that it does not replace.
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_TRUE(add(safetensors_text({{"a", {10, 20}}})).value());
  const std::string next = update_->finish().value();
  EXPECT_EQ(value(next, "a"), 10);
  EXPECT_EQ(value(next, "b"), 30);
  EXPECT_EQ(value(next, "c"), 4);
  update_->keep();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(WeightUpdateTest, FilesOfReplacedValuesAreDeleted) {
  std::filesystem::path files;
  for (const float x : {7.0F, 8.0F, 9.0F}) {
    EXPECT_TRUE(update_->start().has_value());
    EXPECT_TRUE(add(safetensors_text({{"b", {x}}})).value());
    files = std::filesystem::path(update_->finish().value()).parent_path() / "files";
    update_->keep();
  }
  const auto count =
      std::distance(std::filesystem::directory_iterator(files), std::filesystem::directory_iterator());
  EXPECT_EQ(count, 1);
  update_.reset();
  EXPECT_FALSE(std::filesystem::exists(files));
}

TEST_F(WeightUpdateTest, AFileInParts) {
  const std::string file = safetensors_text({{"c", {40, 50, 60}}});
  const std::string first = file.substr(0, 10), rest = file.substr(10);
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_FALSE(update_->add_part(bytes(first), 0, file.size()).value());
  EXPECT_THAT(update_->finish().error().message, HasSubstr("10 of"));
  EXPECT_EQ(update_->add_part(bytes(rest), 11, file.size()).error().field, "Content-Range");
  EXPECT_TRUE(update_->add_part(bytes(rest), 10, file.size()).value());
  EXPECT_EQ(value(update_->finish().value(), "c"), 40);
}

TEST_F(WeightUpdateTest, AFileOfThisHost) {
  directory_.write("elsewhere/step.safetensors", safetensors_text({{"b", {31}}}));
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_EQ(update_->add_file(directory_ / "elsewhere/nothing").error().field, "update_info.path");
  EXPECT_TRUE(update_->add_file(directory_ / "elsewhere/step.safetensors").has_value());
  std::filesystem::remove(directory_ / "elsewhere/step.safetensors");  // the update has its own copy
  EXPECT_EQ(value(update_->finish().value(), "b"), 31);
}

TEST_F(WeightUpdateTest, WhatIsNotTheModelsIsRefused) {
  EXPECT_THAT(add(safetensors_text({{"b", {1}}})).error().message, HasSubstr("/start_weight_update"));
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_THAT(update_->start().error().message, HasSubstr("already running"));
  EXPECT_THAT(add(safetensors_text({{"x", {1}}})).error().message, HasSubstr("no tensor x"));
  EXPECT_EQ(add("no safetensors").error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(update_->add_part(bytes("x"), 0, 2'000'000).error().message,
              HasSubstr("at most 1048672 bytes"));
  EXPECT_THAT(update_->finish().error().message, HasSubstr("no tensor was sent"));
  EXPECT_TRUE(add(safetensors_text({{"b", {1}}})).has_value());
}

TEST_F(WeightUpdateTest, AFailedUpdateIsForgotten) {
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_TRUE(add(safetensors_text({{"b", {30}}})).value());
  const std::string folder = update_->finish().value();
  update_->drop();
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_TRUE(add(safetensors_text({{"a", {10, 20}}})).value());
  EXPECT_EQ(value(update_->finish().value(), "b"), 3);
}

TEST_F(WeightUpdateTest, ItsEndClosesTheLock) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  update_.reset();
  EXPECT_EQ(open_files(), before - 1);
}

TEST_F(WeightUpdateTest, TheFolderInUse) {
  EXPECT_EQ(update_->in_use(), directory_.path().string());
  EXPECT_TRUE(update_->start().has_value());
  EXPECT_TRUE(add(safetensors_text({{"b", {30}}})).value());
  const std::string folder = update_->finish().value();
  EXPECT_EQ(update_->in_use(), directory_.path().string());
  update_->keep();
  EXPECT_EQ(update_->in_use(), folder);
}

TEST(WeightUpdate, NeedsAFolderOfSafetensors) {
  const ScratchDirectory directory;
  directory.write("model.gguf", "GGUF");
  EXPECT_EQ(WeightUpdate::create(directory / "model.gguf").error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace octavo
