#include "weights/low_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/testing/scratch_directory.h"
#include "weights/safetensors_writer.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Stored {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> numbers;
};

class LowRank : public testing::Test {
 protected:
  Checkpoint of(const std::vector<Stored>& tensors) {
    std::vector<TensorEntry> entries;
    for (const Stored& t : tensors)
      entries.push_back({t.name, "F32", t.shape, t.numbers.size() * sizeof(float)});
    std::filesystem::remove(directory_ / "model.safetensors");
    auto writer = SafetensorsWriter::create(directory_ / "model.safetensors", entries).value();
    for (const Stored& t : tensors) EXPECT_TRUE(writer.write(t.name, std::as_bytes(std::span(t.numbers))));
    EXPECT_TRUE(writer.finish());
    return Checkpoint::open(directory_.path()).value();
  }
  // A checkpoint with two changes of a matrix and two changes of an embedding table.
  static std::vector<Stored> two() {
    return {{"fc.parametrizations.weight.original", {2, 3}, {1, 2, 3, 4, 5, 6}},
            {"fc.parametrizations.weight.0.lora_A", {2, 1, 3}, {9, 9, 9, 1, 0, 2}},
            {"fc.parametrizations.weight.0.lora_B", {2, 2, 1}, {9, 9, 10, 20}},
            {"fc.bias", {2}, {7, 8}},
            {"words.parametrizations.weight.original", {3, 2}, {0, 0, 0, 0, 0, 0}},
            {"words.parametrizations.weight.0.lora_A", {2, 3, 1}, {9, 9, 9, 1, 2, 3}},
            {"words.parametrizations.weight.0.lora_B", {2, 1, 2}, {9, 9, 2, 4}}};
  }
  static std::vector<float> numbers(const Checkpoint& checkpoint, std::string_view name) {
    const StoredTensor* tensor = checkpoint.find(name);
    std::vector<float> list;
    for (std::size_t i = 0; tensor != nullptr && i < tensor->bytes.size() / sizeof(float); ++i)
      list.push_back(number_at(*tensor, static_cast<std::int64_t>(i)));
    return list;
  }
  std::string error(const std::function<void(std::vector<Stored>&)>& change, std::int64_t which = 1) {
    std::vector<Stored> tensors = two();
    change(tensors);
    const auto made = with_change(of(tensors), which, 1);
    return made ? "accepted" : made.error().message;
  }

  ScratchDirectory directory_;
};

TEST_F(LowRank, AddsOneChange) {
  const Checkpoint stored = of(two());
  EXPECT_TRUE(has_changes(stored));
  const auto made = with_change(stored, 1, 0.5F);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_FALSE(has_changes(*made));
  EXPECT_EQ(made->tensors().size(), 3u);
  EXPECT_THAT(numbers(*made, "fc.weight"), ElementsAre(6, 2, 13, 14, 5, 26));
  EXPECT_THAT(numbers(*made, "fc.bias"), ElementsAre(7, 8));
  EXPECT_THAT(numbers(*made, "words.weight"), ElementsAre(1, 2, 2, 4, 3, 6));
}

TEST_F(LowRank, ErrorsNameTheTensor) {
  EXPECT_EQ(error([](auto&) {}), "accepted");
  EXPECT_THAT(error([](auto&) {}, 2),
              HasSubstr("lora_A has shape [2, 1, 3], but must have at least 3 matrices"));
  EXPECT_THAT(error([](auto& t) { t.erase(t.begin() + 2); }),
              HasSubstr("fc.parametrizations.weight.0.lora_B is missing"));
  EXPECT_THAT(error([](auto& t) { t[0].shape = {3, 2}; }),
              HasSubstr("which does not match its low-rank factors [2, 1] and [1, 3]"));
  EXPECT_THAT(error([](auto& t) { t[3].name = "fc.weight"; }),
              HasSubstr("tensor fc.weight and its original both exist"));
}

}  // namespace
}  // namespace octavo
