#include "model/quantization_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::HasSubstr;

Result<PackedFormat> read(const std::string& quantization) {
  const auto config = Config::parse("{\"quantization_config\": " + quantization + "}");
  EXPECT_TRUE(config.has_value());
  return packed_format(*config);
}

TEST(QuantizationConfig, NoneIsNone) {
  EXPECT_EQ(packed_format(*Config::parse("{}"))->packing, Packing::none);
  EXPECT_EQ(read("null")->packing, Packing::none);
}

TEST(QuantizationConfig, Gptq) {
  const auto first = read(R"({"quant_method":"gptq","bits":8,"group_size":-1,"desc_act":true,"sym":true})");
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(first->packing, Packing::gptq);
  EXPECT_EQ(first->bits, 8);
  EXPECT_EQ(first->group, 0);
  EXPECT_EQ(first->zero_offset, 1);
  const auto second =
      read(R"({"quant_method":"gptq","bits":4,"group_size":64,"checkpoint_format":"gptq_v2"})");
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(second->group, 64);
  EXPECT_EQ(second->zero_offset, 0);
}

TEST(QuantizationConfig, Blocks) {
  const auto fp8 = read(R"({"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,64]})");
  ASSERT_TRUE(fp8.has_value()) << fp8.error().message;
  EXPECT_EQ(fp8->block_rows, 128);
  EXPECT_EQ(fp8->block_cols, 64);
  const auto other = read(R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":
    {"group_0":{"targets":["Linear"],"weights":{"num_bits":8,"type":"float","strategy":"block",
    "block_structure":[16,32]}},"group_1":{"weights":null}}})");
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(other->packing, Packing::compressed_tensors);
  EXPECT_EQ(other->block_cols, 32);
}

// How activations are rounded to fp8. Activations in int8 are ignored.
TEST(QuantizationConfig, Activations) {
  const auto scheme = [](const std::string& quantization) {
    const auto format = read(quantization);
    EXPECT_TRUE(format.has_value()) << format.error().message;
    return format ? format->activations : ActivationScheme::none;
  };
  EXPECT_EQ(scheme(R"({"quant_method":"fp8"})"), ActivationScheme::row);
  EXPECT_EQ(scheme(R"({"quant_method":"fp8","activation_scheme":"static"})"), ActivationScheme::stored);
  EXPECT_EQ(scheme(R"({"quant_method":"fp8","activation_scheme":"dynamic","weight_block_size":[128,128]})"),
            ActivationScheme::block);
  EXPECT_EQ(scheme(R"({"quant_method":"modelopt","quant_algo":"FP8"})"), ActivationScheme::stored);
  EXPECT_EQ(scheme(R"({"quant_method":"modelopt","quant_algo":"NVFP4"})"), ActivationScheme::none);
  const auto compressed = [&](const std::string& type, const std::string& activations) {
    return scheme(
        R"({"quant_method":"compressed-tensors","config_groups":{"g":{"weights":{"num_bits":8,"type":")" +
        type + R"("},"input_activations":)" + activations + "}}}");
  };
  EXPECT_EQ(compressed("float", "null"), ActivationScheme::none);
  EXPECT_EQ(compressed("float", R"({"num_bits":8,"type":"float","strategy":"token","dynamic":true})"),
            ActivationScheme::row);
  EXPECT_EQ(compressed("float", R"({"num_bits":8,"type":"float","strategy":"group","dynamic":true})"),
            ActivationScheme::block);
  EXPECT_EQ(compressed("float", R"({"num_bits":8,"type":"float","strategy":"tensor","dynamic":false})"),
            ActivationScheme::stored);
  EXPECT_EQ(compressed("int", R"({"num_bits":8,"type":"int","strategy":"token","dynamic":true})"),
            ActivationScheme::none);
}

struct Bad {
  const char* name;
  const char* quantization;
  const char* message;
};

const Bad kBad[] = {
    {"NotAnObject", "4", "quantization_config must be an object"},
    {"NoMethod", "{}", "quantization_config.quant_method is missing"},
    {"OtherMethod", R"({"quant_method":"bitsandbytes"})",
     "quant_method is bitsandbytes, but only gptq, awq,"},
    {"NoBits", R"({"quant_method":"gptq"})", "quantization_config.bits is missing"},
    {"ThreeBits", R"({"quant_method":"gptq","bits":3})",
     "quantization_config.bits is 3, but only 4 and 8 are"},
    {"NoGroup", R"({"quant_method":"gptq","bits":4})", "quantization_config.group_size is missing"},
    {"GroupOfNone", R"({"quant_method":"gptq","bits":4,"group_size":0})", "group_size must not be 0"},
    {"Marlin", R"({"quant_method":"gptq","bits":4,"group_size":64,"checkpoint_format":"marlin"})",
     "quantization_config.checkpoint_format is marlin, but only gptq, gptq_v2 is supported"},
    {"Words", R"({"quant_method":"gptq","bits":4,"group_size":64,"pack_dtype":"int16"})",
     "pack_dtype is int16"},
    {"AwqBits", R"({"quant_method":"awq","bits":8,"group_size":64})", "bits is 8, but must be in [4, 4]"},
    {"AwqVersion", R"({"quant_method":"awq","bits":4,"group_size":64,"version":"gemv"})", "version is gemv"},
    {"AwqZeros", R"({"quant_method":"awq","bits":4,"group_size":64,"zero_point":false})", "without zero"},
    {"CompressedFormat", R"({"quant_method":"compressed-tensors","format":"marlin-24"})",
     "format is marlin-24"},
    {"CompressedFp4", R"({"quant_method":"compressed-tensors","format":"mixed-precision","config_groups":
      {"a":{"weights":{"num_bits":4,"type":"float","strategy":"group"}}}})",
     "strategy is group, but only tensor_group is supported"},
    {"ModelOptInt4", R"({"quant_method":"modelopt","quant_algo":"W4A8_AWQ"})",
     "quant_algo is W4A8_AWQ, but only NVFP4, FP8"},
    {"CompressedStrategy", R"({"quant_method":"compressed-tensors","config_groups":
      {"a":{"weights":{"num_bits":8,"strategy":"tensor_group"}}}})",
     "strategy is tensor_group"},
    {"Sparse", R"({"quant_method":"compressed-tensors","sparsity_config":{"format":"sparse-24-bitmask"}})",
     "format is sparse-24-bitmask"},
    {"Transform", R"({"quant_method":"compressed-tensors","transform_config":{"config_groups":{"R1":{}}}})",
     "transforms of activations"},
    {"OtherActivations", R"({"quant_method":"fp8","activation_scheme":"later"})",
     "activation_scheme is later, but only dynamic, static"},
    {"OtherFp8", R"({"quant_method":"fp8","fmt":"e5m2"})", "fmt is e5m2"},
    {"Block", R"({"quant_method":"fp8","weight_block_size":[128]})", "must be a list of 2 numbers"},
    {"NegativeBlock", R"({"quant_method":"fp8","weight_block_size":[128,-1]})", "must be in [1, "},
};

class QuantizationConfigBad : public testing::TestWithParam<Bad> {};

TEST_P(QuantizationConfigBad, IsRefused) {
  const auto format = read(GetParam().quantization);
  ASSERT_FALSE(format.has_value());
  EXPECT_THAT(format.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(format.error().field, HasSubstr("quantization_config"));
}

INSTANTIATE_TEST_SUITE_P(Table, QuantizationConfigBad, testing::ValuesIn(kBad),
                         [](const testing::TestParamInfo<Bad>& bad) { return bad.param.name; });

}  // namespace
}  // namespace octavo
