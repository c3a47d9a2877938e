#include "openai/api_key.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(ApiKeys, OnlyExactKeysPass) {
  const ApiKeys keys({"secret", "other"});
  EXPECT_TRUE(keys.allows("Bearer secret"));
  EXPECT_TRUE(keys.allows("bearer other"));
  for (const std::string bad : {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets",
                                "Bearer  secret", "Basic secret", "Bearer Secret", "Bearer secret "})
    EXPECT_FALSE(keys.allows(bad)) << bad;
  EXPECT_FALSE(keys.open());
  EXPECT_TRUE(ApiKeys({}).open());
  EXPECT_FALSE(ApiKeys({""}).allows("Bearer "));
}

}  // namespace
}  // namespace octavo
