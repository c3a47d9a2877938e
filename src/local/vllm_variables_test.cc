#include "local/vllm_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::ElementsAre;

TEST(VllmVariables, UnreadOnesAndMisspeltOnesAreNamed) {
  const char* environment[] = {
      "PATH=/bin",     "VLLM_USE_V1=1", "VLLM_CPU_KVCACHE_SPACE=4", "VLLM_LOGING_LEVEL=DEBUG", "VLLM_XYZ",
      "VLLM_HOST_IP=", nullptr};
  const VariableWarnings found = check_vllm_variables(environment);
  EXPECT_THAT(found.unread, ElementsAre("VLLM_HOST_IP", "VLLM_USE_V1"));
  EXPECT_THAT(found.unknown, ElementsAre("VLLM_LOGING_LEVEL (did you mean VLLM_LOGGING_LEVEL?)", "VLLM_XYZ"));
}

TEST(VllmVariables, NoNameIsInBothLists) {
  const std::vector<std::string_view> others = other_vllm_variables();
  EXPECT_GT(others.size(), 290u);
  for (const VllmVariable& variable : read_vllm_variables())
    EXPECT_EQ(std::ranges::find(others, variable.name), others.end()) << variable.name;
  for (const std::string_view name : others) EXPECT_TRUE(name.starts_with("VLLM_")) << name;
}

}  // namespace
}  // namespace octavo
