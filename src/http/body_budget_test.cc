#include "http/body_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/client.h"
#include "http/exchange.h"
#include "http/server.h"

namespace octavo::http {
namespace {

TEST(BodyBudget, UnreadResponsesLeaveHalfOfTheBudgetToBodies) {
  std::vector<std::shared_ptr<Exchange>> held;
  const auto server =
      Server::start({.bodies_bytes_max = 1000}, [&](const std::shared_ptr<Exchange>& exchange) {
        if (exchange->request().path != "/reserve") return exchange->respond({});
        held.push_back(exchange);
        auto full = exchange->reserve(250);
        exchange->respond(full ? *std::move(full) : Response{});
      }).value();
  const auto client = [&] { return Client::connect({.port = server->port(), .timeout_ms = 60'000}).value(); };
  EXPECT_EQ(client().get("/reserve")->status, 200);
  EXPECT_EQ(client().get("/reserve")->status, 200);
  EXPECT_EQ(client().get("/reserve")->status, 503);
  EXPECT_EQ(client().post_json("/", std::string(500, 'x'))->status, 200);
  EXPECT_EQ(client().post_json("/", std::string(501, 'x'))->status, 503) << "both share the budget";
  held.clear();
  EXPECT_EQ(client().get("/reserve")->status, 200);
  EXPECT_EQ(client().post_json("/", std::string(750, 'x'))->status, 200);
  held.clear();
}

}  // namespace
}  // namespace octavo::http
