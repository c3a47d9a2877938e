#include "weights/encoder_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StoredTensor tensor_of(std::string name, std::vector<std::int64_t> shape, std::vector<float>& numbers,
                       float first) {
  numbers.resize(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies())));
  std::iota(numbers.begin(), numbers.end(), first);
  return {.name = std::move(name),
          .format = "F32",
          .dtype = DType::f32,
          .shape = std::move(shape),
          .bytes = std::as_bytes(std::span(numbers))};
}

TEST(EncoderTensors, FramesAreJoined) {
  std::vector<float> first, second;
  std::vector<StoredTensor> tensors{tensor_of("v.patch_embd.weight", {2, 3, 2, 1}, first, 0),
                                    tensor_of("v.patch_embd.weight.1", {2, 3, 2, 1}, second, 100)};
  const auto memory = restore_encoder_tensors(tensors);
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_THAT(tensors[0].shape, ElementsAre(2, 3, 2, 2, 1));
  std::vector<float> joined;
  for (int i = 0; i < 24; ++i) joined.push_back(number_at(tensors[0], i));
  EXPECT_THAT(joined, ElementsAre(0, 1, 100, 101, 2, 3, 102, 103, 4, 5, 104, 105, 6, 7, 106, 107, 8, 9, 108,
                                  109, 10, 11, 110, 111));
}

TEST(EncoderTensors, FramesOfDifferentShapesAreAnError) {
  std::vector<float> first, second;
  std::vector<StoredTensor> tensors{tensor_of("v.patch_embd.weight", {2, 3, 2, 2}, first, 0),
                                    tensor_of("v.patch_embd.weight.1", {2, 3, 2, 1}, second, 0)};
  const auto memory = restore_encoder_tensors(tensors);
  ASSERT_FALSE(memory.has_value());
  EXPECT_THAT(memory.error().message, HasSubstr("v.patch_embd.weight.1 is F32 with shape [2, 3, 2, 1]"));
}

TEST(EncoderTensors, DimensionsOfLengthOneAreRemoved) {
  std::vector<float> a, b, c, d, e;
  std::vector<StoredTensor> tensors{
      tensor_of("v.class_embd", {1, 1, 4}, a, 0), tensor_of("v.position_embd.weight", {1, 5, 4}, b, 0),
      tensor_of("mm.2.bias", {4, 1}, c, 0), tensor_of("mm.2.weight", {1, 4}, d, 0),
      tensor_of("v.blk.0.attn_q.input_min", {1}, e, 0)};
  ASSERT_TRUE(restore_encoder_tensors(tensors).has_value());
  EXPECT_THAT(tensors[0].shape, ElementsAre(4));
  EXPECT_THAT(tensors[1].shape, ElementsAre(5, 4));
  EXPECT_THAT(tensors[2].shape, ElementsAre(4));
  EXPECT_THAT(tensors[3].shape, ElementsAre(1, 4));
  EXPECT_THAT(tensors[4].shape, ElementsAre());
}

}  // namespace
}  // namespace octavo
