#include "http/client.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "http/server.h"

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

TEST(Client, ADeadlineEndsEveryWait) {
  std::shared_ptr<Exchange> unanswered;
  const auto server =
      Server::start({}, [&](const std::shared_ptr<Exchange>& exchange) { unanswered = exchange; }).value();
  auto client = Client::connect({.port = server->port(), .deadline_us = now_us() + 1'000'000}).value();
  const auto late = client.get("/");
  ASSERT_FALSE(late);
  // On a busy machine, the deadline may pass before the request is sent.
  EXPECT_TRUE(late.error().message.ends_with(": timed out")) << late.error().message;
}

}  // namespace
}  // namespace octavo::http
