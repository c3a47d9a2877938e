#include "http/inflate.h"

#include <gtest/gtest.h>

#include <random>

#include "http/client.h"
#include "http/server.h"
#include "http/testing/gzip.h"

namespace octavo::http {
namespace {

Inflated inflated(std::string_view bytes, std::uint64_t most, std::string& out) {
  out.clear();
  return inflate(bytes, most, out, [](std::uint64_t) { return true; });
}

TEST(Inflate, UndoesGzip) {
  std::string out;
  std::string text;
  std::mt19937 rng(3);
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>('a' + rng() % 20);
  for (const std::string& t : {std::string(), std::string("x"), text}) {
    EXPECT_EQ(inflated(gzip(t), 1 << 20, out), Inflated::whole);
    EXPECT_EQ(out, t);
  }
}

TEST(Inflate, RefusesWhatIsNone) {
  std::string out;
  const std::string good = gzip("some text that is long enough to be cut");
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(inflated(std::string_view(good).substr(0, size), 1 << 20, out), Inflated::malformed) << size;
  EXPECT_EQ(inflated(good + "x", 1 << 20, out), Inflated::malformed);
  EXPECT_EQ(inflated("{\"prompt\": 1}", 1 << 20, out), Inflated::malformed);
}

// The input expands to much more than the limit.
TEST(Inflate, StopsAtTheLimit) {
  std::string out;
  const std::string bomb = gzip(std::string(16 << 20, '\0'));
  ASSERT_LT(bomb.size(), 32U << 10);
  EXPECT_EQ(inflated(bomb, 1 << 20, out), Inflated::too_large);
  EXPECT_LE(out.capacity(), 3U << 20);
  out.clear();
  EXPECT_EQ(inflate(bomb, 64 << 20, out, [](std::uint64_t size) { return size <= 200'000; }),
            Inflated::too_large);
  EXPECT_LE(out.size(), 200'000U);
}

TEST(Inflate, OfRequests) {
  ServerOptions options{.body_bytes_max = 1 << 20, .bodies_bytes_max = 4 << 20};
  const auto server = Server::start(options, [](std::shared_ptr<Exchange> exchange) {
                        if (auto refusal = exchange->decode_body(1 << 20))
                          return exchange->respond(*std::move(refusal));
                        exchange->respond({.body = exchange->take_body()});
                      }).value();
  Client client = Client::connect({.port = server->port()}).value();
  const auto send = [&](std::string body, const std::string& coding) {
    return client.request("POST", "/", std::move(body), {{"Content-Encoding", coding}}).value();
  };
  EXPECT_EQ(send(gzip("hello"), "gzip").body, "hello");
  EXPECT_EQ(send("hello", "identity").body, "hello");
  EXPECT_EQ(send("hello", "gzip").status, 400);
  EXPECT_EQ(send("hello", "br").status, 415);
  EXPECT_EQ(send(gzip(std::string(2 << 20, 'x')), "GZip").status, 413);
  EXPECT_EQ(send(gzip("again"), "deflate").body, "again");
}

}  // namespace
}  // namespace octavo::http
