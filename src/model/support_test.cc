// Tests which models the CUDA backend rejects. In builds without CUDA, the backend is emulated.
#include "model/support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/backends.h"
#include "model/model.h"

namespace octavo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Support, NamesThePartTheNeedAndTheRemedy) {
  const auto cuda = make_cuda_backend();
  if (!cuda) GTEST_SKIP() << cuda.error().message;
  const auto refusal = [&](const std::string& model, const LoadOptions& options = {}) {
    const Result<> supported = check_support("tests/data/" + model, options, *cuda);
    EXPECT_TRUE(supported || supported.error().field == "device") << model;
    return supported ? "" : supported.error().message;
  };
  EXPECT_EQ(refusal("models/llama"), "");
  EXPECT_EQ(refusal("models/deepseek_v32"), "");
  EXPECT_THAT(
      refusal("models/deepseek_v4"),
      AllOf(HasSubstr(
                "DeepseekV4ForCausalLM needs operator collapse_streams, which device cuda does not support"),
            HasSubstr("set --device cpu")));
  EXPECT_THAT(
      refusal("encoders/t5-encoder"),
      HasSubstr(
          "T5EncoderModel, layer 0 (3 query and 3 key heads of 24, both ways, biases of 16 distances) needs "
          "attention with biases by distance"));
  EXPECT_THAT(refusal("sound/whisper"), HasSubstr("needs cross attention to the rows of an encoder"));
}

// The encoder is checked too, unless the options exclude its media.
TEST(Support, OfATowerFollowsFromTheOptions) {
  const auto cuda = make_cuda_backend();
  if (!cuda) GTEST_SKIP() << cuda.error().message;
  const Result<> with = check_support("tests/data/sound/voxtral", {}, *cuda);
  ASSERT_FALSE(with);
  EXPECT_THAT(with.error().message,
              AllOf(HasSubstr("needs encoders of sound"), HasSubstr(R"({"audio": 0})")));
  EXPECT_TRUE(check_support("tests/data/sound/voxtral", {.sounds = false}, *cuda));
}

TEST(Support, WhatAnOptionAsksForIsNotTheDevicesFault) {
  const auto refusal = [](const LoadOptions& options) {
    return check_support("tests/data/models/llama", options, make_reference_backend()).error();
  };
  EXPECT_EQ(refusal({.block_size = 12}).field, "block_size");
}

}  // namespace
}  // namespace octavo
