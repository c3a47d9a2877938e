#include "fleet/observe/server_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/server.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

// A server with these pages by path. All other paths return 404.
std::unique_ptr<http::Server> serving(std::map<std::string, std::string> pages) {
  return http::Server::start({},
                             [pages = std::move(pages)](std::shared_ptr<http::Exchange> exchange) {
                               const auto page = pages.find(exchange->request().path);
                               const bool known =
                                   exchange->request().headers.find("authorization") == "Bearer key";
                               if (!known || page == pages.end())
                                 return exchange->respond({.status = known ? 404 : 401});
                               exchange->respond({.body = page->second});
                             })
      .value();
}

TEST(ServerPages, ARouterStandsForItsWorkers) {
  const auto replica = serving({{"/metrics", "up 1\n"}});
  const auto router =
      serving({{"/workers", R"({"workers": [{"url": "http://a:1"}, {"url": "http://b:2"}]})"}});
  const auto empty = serving({{"/workers", R"({"workers": []})"}});
  const std::vector<std::string> all{replica->address(), router->address(), empty->address()};
  EXPECT_THAT(servers_at(all, "key"), ElementsAre(replica->address(), "http://a:1", "http://b:2"));
}

TEST(ServerPages, APoolIsTheWorkersOfOneType) {
  const auto router = serving({{"/workers", R"({"workers": [{"url": "http://a:1", "worker_type": "prefill"},
      {"url": "http://b:2", "worker_type": "decode"}, {"url": "http://c:3"}]})"}});
  EXPECT_THAT(servers_at({router->address()}, "key", "prefill"), ElementsAre("http://a:1"));
  EXPECT_THAT(servers_at({router->address()}, "key", "decode"), ElementsAre("http://b:2"));
}

TEST(ServerPages, ThoseThatDoNotAnswerSaySo) {
  const auto replica = serving({{"/metrics", "up 1\n"}}), other = serving({});
  const std::string missing = "http://127.0.0.1:1";
  const auto pages = metrics_pages({replica->address(), other->address(), missing}, "key");
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(pages.at(replica->address()).value(), "up 1\n");
  EXPECT_THAT(pages.at(other->address()).error().message, testing::HasSubstr("404"));
  EXPECT_FALSE(pages.at(missing));
  EXPECT_THAT(metrics_pages({replica->address()}, "wrong").begin()->second.error().message,
              testing::HasSubstr("401"));
}

}  // namespace
}  // namespace octavo::fleet
