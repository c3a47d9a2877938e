#include "weights/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "weights/checkpoint.h"
#include "weights/slots.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SafetensorsWriterTest : public testing::Test {
 protected:
  ScratchDirectory directory_;
};

TEST_F(SafetensorsWriterTest, IsReadAgainInAnyOrder) {
  auto writer = SafetensorsWriter::create(
      directory_ / "model.safetensors",
      {{"codes", "I8", {3}, 3}, {"none", "F32", {0, 2}, 0}, {"numbers", "F32", {2}, 8}});
  ASSERT_TRUE(writer.has_value());
  const std::vector<float> numbers{1.5f, -2};
  const std::vector<std::int8_t> codes{-1, 0, 1};
  ASSERT_TRUE(writer->write("numbers", std::as_bytes(std::span(numbers))).has_value());
  ASSERT_TRUE(writer->write("none", {}).has_value());
  ASSERT_TRUE(writer->write("codes", std::as_bytes(std::span(codes))).has_value());
  ASSERT_TRUE(writer->finish().has_value());
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(number_at(*checkpoint->find("numbers"), 1), -2);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(checkpoint->find("numbers")->bytes.data()) % 4, 0u);
  EXPECT_EQ(checkpoint->find("codes")->bytes[0], std::byte{0xff});
  EXPECT_THAT(checkpoint->find("none")->shape, testing::ElementsAre(0, 2));
}

TEST_F(SafetensorsWriterTest, DoesNotOverwrite) {
  const auto first = SafetensorsWriter::create(directory_ / "model.safetensors", {});
  ASSERT_TRUE(first.has_value());
  const auto again = SafetensorsWriter::create(directory_ / "model.safetensors", {});
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::io);
  EXPECT_THAT(again.error().message, HasSubstr("model.safetensors: File exists"));
}

// The first GPTQ tools wrote a bias of zeros for every matrix.
TEST_F(SafetensorsWriterTest, BiasesOfZerosBesidePackedMatricesAreNoTensorsTooMany) {
  const std::vector<TensorEntry> entries{{"a.qweight", "I32", {1, 8}, 32},
                                         {"a.qzeros", "I32", {1, 1}, 4},
                                         {"a.scales", "F32", {1, 8}, 32},
                                         {"a.bias", "F32", {8}, 32}};
  const std::vector<Slot> slots{{"a.weight", {8, 8}}};
  for (const float last : {0.0f, 1.0f}) {
    fs::remove(directory_ / "model.safetensors");
    auto writer = SafetensorsWriter::create(directory_ / "model.safetensors", entries);
    ASSERT_TRUE(writer.has_value());
    for (const TensorEntry& entry : entries) {
      std::vector<float> values(entry.bytes / 4, 0.0f);
      if (entry.name == "a.bias") values.back() = last;
      ASSERT_TRUE(writer->write(entry.name, std::as_bytes(std::span(values))).has_value());
    }
    ASSERT_TRUE(writer->finish().has_value());
    const auto checkpoint = Checkpoint::open(directory_.path(), {.packing = Packing::gptq});
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    EXPECT_EQ(check_slots(*checkpoint, slots, {}).has_value(), last == 0);
  }
}

}  // namespace
}  // namespace octavo
