#include "http/local_exchange.h"

#include <gtest/gtest.h>

#include <memory>

namespace octavo::http {
namespace {

struct Answers {
  int count = 0;
  Response last{};
  std::shared_ptr<LocalExchange> exchange = std::make_shared<LocalExchange>(
      Request{.method = "POST", .path = "/a", .query = "", .headers = {}, .body = "x", .peer = ""},
      [this](Response response) {
        ++count;
        last = std::move(response);
      });
};

TEST(LocalExchange, HandsTheResponseOverOnce) {
  Answers answers;
  EXPECT_EQ(answers.exchange->take_body(), "x");
  bool closed = false;
  answers.exchange->on_close([&](CloseReason) { closed = true; });
  answers.exchange->respond({.status = 404, .body = "none"});
  answers.exchange->respond({.status = 200});
  answers.exchange->close();
  EXPECT_EQ(answers.count, 1);
  EXPECT_EQ(answers.last.status, 404);
  EXPECT_FALSE(closed) << "it was answered";
}

TEST(LocalExchange, AStreamIsOneResponse) {
  Answers answers;
  answers.exchange->start_stream({.content_type = "text/event-stream", .body = "a"});
  EXPECT_TRUE(answers.exchange->write("b"));
  EXPECT_EQ(answers.count, 0);
  answers.exchange->finish();
  EXPECT_EQ(answers.last.body, "ab");
}

TEST(LocalExchange, ACloseReachesTheHandlerAndEndsTheAnswer) {
  Answers answers;
  int closed = 0;
  answers.exchange->on_close([&](CloseReason) { ++closed; });
  answers.exchange->close();
  answers.exchange->on_close([&](CloseReason) { ++closed; });
  answers.exchange->respond({});
  EXPECT_EQ(closed, 2);
  EXPECT_EQ(answers.count, 0);
}

TEST(LocalExchange, ADroppedRequestIsAnError) {
  Answers answers;
  answers.exchange.reset();
  EXPECT_EQ(answers.last.status, 500);
}

}  // namespace
}  // namespace octavo::http
