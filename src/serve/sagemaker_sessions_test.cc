#include "serve/sagemaker_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace octavo {
namespace {

TEST(SageMakerSessionsTest, ASessionEndsWhenItIsClosedOrExpires) {
  SageMakerSessions sessions(1200);
  const auto first = sessions.create(1000).value(), second = sessions.create(1100).value();
  EXPECT_THAT(first.id,
              testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(first.id, second.id);
  EXPECT_EQ(first.expires_s, 2200);
  EXPECT_TRUE(sessions.check(first.id, 2199));
  EXPECT_EQ(sessions.check(first.id, 2200).error().field, "X-Amzn-SageMaker-Session-Id");
  EXPECT_TRUE(sessions.close(second.id, 2200));
  EXPECT_FALSE(sessions.close(second.id, 2200)) << "closed already";
  EXPECT_FALSE(sessions.check("other", 1000));
}

TEST(SageMakerSessionsTest, OnlyOpenSessionsCountInTheLimit) {
  SageMakerSessions sessions(10);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < SageMakerSessions::kSessionsMax; ++i)
    ids.insert(sessions.create(100).value().id);
  EXPECT_EQ(ids.size(), SageMakerSessions::kSessionsMax);
  EXPECT_EQ(sessions.create(109).error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(sessions.create(110));
}

}  // namespace
}  // namespace octavo
