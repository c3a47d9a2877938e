#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "http/server.h"

namespace octavo::http {
namespace {

TEST(Servers, AddressesOfIpv6HaveBrackets) {
  const auto answer = [](std::shared_ptr<Exchange> exchange) { exchange->respond({.body = "here"}); };
  const auto server = Server::start({.host = "::1"}, answer);
  if (!server) GTEST_SKIP() << server.error().message;
  EXPECT_EQ((*server)->address(), "http://[::1]:" + std::to_string((*server)->port()));
  const auto second = Server::start({.host = "::1", .port = (*server)->port()}, answer);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, testing::HasSubstr((*server)->address().substr(7)));
}

}  // namespace
}  // namespace octavo::http
