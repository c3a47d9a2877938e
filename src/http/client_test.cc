#include "http/client.h"

#include <gtest/gtest.h>

namespace octavo::http {
namespace {

TEST(Client, SaysThatNobodyListens) {
  const auto client = Client::connect({.port = 1, .timeout_ms = 500});
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().field, "port");
}

TEST(Client, SaysThatAHostDoesNotExist) {
  const auto client = Client::connect({.host = "no such host", .port = 1});
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().field, "host");
}

}  // namespace
}  // namespace octavo::http
