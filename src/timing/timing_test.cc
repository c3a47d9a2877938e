#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

TEST(StepTiming, IsTheLongerOfBytesAndArithmetic) {
  const StepTiming timing{.fixed_us = 10, .weights_us = 100, .token_us = 1, .kv_token_us = 2, .pair_us = 0.5};
  StepWork decode;
  decode.add(9, 1);
  decode.add(19, 1);
  EXPECT_EQ(decode.tokens, 2);
  EXPECT_EQ(decode.kv_tokens, 30);
  EXPECT_EQ(decode.pairs, 30);
  EXPECT_EQ(timing.microseconds(decode), 10 + 100 + 60);
  StepWork prefill;
  prefill.add(100, 200);
  EXPECT_EQ(prefill.pairs, 200 * 100 + 200 * 201 / 2);
  EXPECT_EQ(timing.microseconds(prefill), 10 + 200 + 20050);
  EXPECT_EQ(StepTiming{}.microseconds({}), 1) << "time goes on";
  EXPECT_EQ(StepTiming{.fixed_us = 1e300}.microseconds({}), StepTiming::kLongestUs);
}

TEST(Roofline, OfALlamaOnOneAndOnTwoDevices) {
  const auto model = *read_model_figures("llama-3.1-8b");
  const auto device = *read_device_figures("h100");
  EXPECT_EQ(model.kv_bytes_per_token, 131072);
  const StepTiming one = roofline(model, device, 1), two = roofline(model, device, 2);
  EXPECT_NEAR(one.weights_us, 16.06e9 / (3.35e12 * 0.8) * 1e6, 1);
  EXPECT_NEAR(one.token_us, 15.0e9 / (989e12 * 0.6) * 1e6, 0.1);
  EXPECT_NEAR(two.weights_us, one.weights_us / 2, 1e-6);
  EXPECT_EQ(two.fixed_us, one.fixed_us);
  EXPECT_NEAR(static_cast<double>(*cache_tokens(model, device, 1, 0.9)), 464'600, 100);
  EXPECT_EQ(cache_tokens(*read_model_figures("llama-3.1-70b"), device, 1, 0.9).error().field, "model");
}

class ReadTiming : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    scratch_.write("timing.json", text);
    return (scratch_ / "timing.json").string();
  }
  ScratchDirectory scratch_;
};

TEST_F(ReadTiming, FromAFile) {
  const auto timing = read_step_timing(file(R"({"fixed_us": 500, "token_us": 2.5})"));
  ASSERT_TRUE(timing) << timing.error().message;
  EXPECT_EQ(timing->fixed_us, 500);
  EXPECT_EQ(timing->token_us, 2.5);
  EXPECT_EQ(timing->kv_token_us, 0);
}

TEST_F(ReadTiming, SaysWhatIsWrong) {
  EXPECT_EQ(read_step_timing("/nowhere/at/all").error().code, ErrorCode::not_found);
  EXPECT_EQ(read_step_timing(file(R"({"token_ms": 1})")).error().field, "token_ms");
  EXPECT_EQ(read_step_timing(file(R"({"token_us": "1"})")).error().field, "token_us");
  EXPECT_EQ(read_step_timing(file(R"({"token_us": -1})")).error().field, "token_us");
  EXPECT_FALSE(read_step_timing(file("[1, 2]")));
  EXPECT_FALSE(read_step_timing(file(std::string(1 << 17, ' ') + "{}")));
  EXPECT_EQ(read_model_figures(file(R"({"weight_bytes": 1e9, "operations_per_token": 1e9})")).error().field,
            "kv_bytes_per_token");
  EXPECT_EQ(read_device_figures(file(R"({"bytes_per_second": 1e9, "operations_per_second": 1e9,
                                         "memory_bytes": 1e9, "compute_share": 0})"))
                .error()
                .field,
            "compute_share");
}

}  // namespace
}  // namespace octavo
