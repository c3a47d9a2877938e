#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "fleet/plan/capacity.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

Result<CapacityTable> read(std::string_view text) {
  const ScratchDirectory folder;
  folder.write("plan.json", text);
  return read_capacity(folder / "plan.json");
}

TEST(CapacityFile, IsWhatAPlanWrote) {
  const auto table =
      read(R"({"replicas": 4, "scaling": {"capacity": [{"replicas": 1, "tokens_per_second": 100.0},
                               {"replicas": 3, "tokens_per_second": 300}], "windows": []}})");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->replicas_for(90), 1);
  EXPECT_EQ(table->replicas_for(150), 2);
  EXPECT_EQ(table->replicas_for(500), 5);
}

TEST(CapacityFile, MistakesAreNamed) {
  const auto error_of = [](std::string_view text) { return read(text).error().message; };
  for (const char* text : {"", "[]", R"({"scaling": {}})", R"({"scaling": {"capacity": []}})"})
    EXPECT_THAT(error_of(text), HasSubstr("contains no capacities")) << text;
  for (const char* row :
       {"1", "{}", R"({"replicas": 0, "tokens_per_second": 1})",
        R"({"replicas": 1, "tokens_per_second": "1"})", R"({"replicas": 1e9, "tokens_per_second": 1})",
        R"({"replicas": 2, "tokens_per_second": 1}, {"replicas": 2, "tokens_per_second": 1})"})
    EXPECT_THAT(error_of(fmt::format(R"({{"scaling": {{"capacity": [{}]}}}})", row)),
                HasSubstr("must have more replicas"))
        << row;
  EXPECT_THAT(error_of(R"({"scaling": {"capacity": [{"replicas": 2, "tokens_per_second": 0}]}})"),
              HasSubstr("no fleet could serve"));
  EXPECT_EQ(read_capacity("/nowhere/plan.json").error().field, "capacity");
}

}  // namespace
}  // namespace octavo::fleet
