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
  EXPECT_EQ(refusal("models/deepseek_v4"), "");
  EXPECT_EQ(refusal("encoders/t5-encoder"), "");
  EXPECT_EQ(refusal("sound/whisper"), "");
  EXPECT_THAT(refusal("models/pangu_pro"),
              AllOf(HasSubstr("PanguProMoEV2ForCausalLM, layer 0"),
                    HasSubstr("needs attention with fixed keys, which device cuda does not support"),
                    HasSubstr("set --device cpu")));
}

// The encoder is checked too, unless the options exclude its media. Only the encoder has two key heads.
TEST(Support, OfATowerFollowsFromTheOptions) {
  auto cuda = make_cuda_backend();
  if (!cuda) GTEST_SKIP() << cuda.error().message;
  Ops ops = cuda->ops;
  ops.supports = [](const KvSpec& spec, int) -> Result<> {
    if (spec.kv_heads == 2) return field_failure("head_dim", ErrorCode::unsupported, "two heads");
    return {};
  };
  const Backend limited{
      .name = "cuda", .ops = ops, .device = std::move(cuda->device), .stream = std::move(cuda->stream)};
  const Result<> with = check_support("tests/data/sound/voxtral", {}, limited);
  ASSERT_FALSE(with);
  EXPECT_THAT(with.error().message, AllOf(HasSubstr("has a head_dim that device cuda does not support"),
                                          HasSubstr(R"({"audio": 0})")));
  EXPECT_TRUE(check_support("tests/data/sound/voxtral", {.sounds = false}, limited));
}

TEST(Support, WhatAnOptionAsksForIsNotTheDevicesFault) {
  const auto refusal = [](const LoadOptions& options) {
    return check_support("tests/data/models/llama", options, make_reference_backend()).error();
  };
  EXPECT_EQ(refusal({.block_size = 12}).field, "block_size");
}

}  // namespace
}  // namespace octavo
