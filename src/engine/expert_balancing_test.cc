#include "engine/expert_balancing.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

std::string error(std::string_view json) {
  ExpertBalancing options;
  const auto read = read_eplb_config(json, options);
  return read ? "accepted" : read.error().field + " " + read.error().message;
}

TEST(ExpertBalancing, VllmsFieldsAreRead) {
  ExpertBalancing options;
  ASSERT_TRUE(read_eplb_config(
      R"({"window_size": 10, "step_interval": 20, "num_redundant_experts": 2, "log_balancedness": true, "use_async": false,
          "policy": "default", "communicator": "torch_nccl"})",
      options));
  EXPECT_EQ(options, (ExpertBalancing{.enabled = false,
                                      .window_size = 10,
                                      .step_interval = 20,
                                      .redundant_experts = 2,
                                      .log_balancedness = true,
                                      .use_async = false}));
  ASSERT_TRUE(read_eplb_config("{}", options));
  EXPECT_EQ(options.window_size, 10) << "what is left out stays";
}

TEST(ExpertBalancing, ErrorsNameFieldAndLimit) {
  EXPECT_EQ(error("[]"), "eplb_config must be a JSON object");
  EXPECT_EQ(error(R"({"window": 1})"), "eplb_config the field \"window\" does not exist");
  EXPECT_EQ(error(R"({"window_size": 0})"), "window_size must be an integer in [1, 10000000]");
  EXPECT_EQ(error(R"({"num_redundant_experts": -1})"),
            "num_redundant_experts must be an integer in [0, 65535]");
  EXPECT_EQ(error(R"({"use_async": 1})"), "use_async must be true or false");
  EXPECT_EQ(error(R"({"policy": "other"})"), "policy must be \"default\"");
}

}  // namespace
}  // namespace octavo
