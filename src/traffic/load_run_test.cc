#include "traffic/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <mutex>

#include "base/clock.h"
#include "http/server.h"
#include "http/sse.h"

namespace octavo::traffic {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

std::string piece(std::string_view text) {
  return http::sse_event(json::serialize(json::object{{"choices", json::array{{{"text", text}}}}}));
}

class LoadRun : public testing::Test {
 protected:
  void serve(http::Handler handler) {
    server_ = http::Server::start({}, std::move(handler)).value();
    options_.server = {"127.0.0.1", server_->port()};
    options_.model = "m";
  }
  // Responds with two chunks. The request's text contains the usage to report.
  void serve_answers() {
    serve([this](std::shared_ptr<http::Exchange> e) {
      {
        const std::lock_guard lock(mutex_);
        bodies_.push_back(json::parse(e->request().body).as_object());
      }
      e->start_stream({.content_type = "text/event-stream"});
      e->write(piece("one "));
      e->write(piece("two"));
      e->write(http::sse_event(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}})"));
      e->write(http::sse_event("[DONE]"));
      e->finish();
    });
  }
  LoadResult run(std::size_t count, std::vector<std::int64_t> due = {}) {
    due.resize(count);
    std::vector<Prompt> prompts(count,
                                {.ids = {1, 2}, .text = "hello", .input_tokens = 2, .output_tokens = 3});
    return run_load(prompts, due, options_, [](std::size_t) {});
  }

  std::unique_ptr<http::Server> server_;
  LoadOptions options_;
  std::mutex mutex_;
  std::vector<json::object> bodies_;
};

TEST_F(LoadRun, NotesTokensTextAndTimes) {
  serve_answers();
  options_.body = {{"temperature", 0}, {"max_tokens", 9}};
  const LoadResult result = run(5);
  ASSERT_EQ(result.answers.size(), 5U);
  for (const LoadAnswer& a : result.answers) {
    EXPECT_EQ(a.error, "");
    EXPECT_TRUE(a.times.completed);
    EXPECT_EQ(a.text, "one two");
    EXPECT_EQ(a.times.input_tokens, 7);
    EXPECT_EQ(a.times.output_tokens, 5);
    EXPECT_EQ(a.gaps_us.size(), 1U);
    EXPECT_LE(a.times.sent_us, a.times.first_us);
    EXPECT_LE(a.times.first_us, a.times.last_us);
  }
  EXPECT_EQ(bodies_[0].at("prompt"), (json::array{1, 2}));
  EXPECT_EQ(bodies_[0].at("max_tokens"), 9) << "a given field goes before ours";
  EXPECT_EQ(bodies_[0].at("temperature"), 0);
}

TEST_F(LoadRun, ChatSendsMessages) {
  serve_answers();
  options_.chat = true;
  run(1);
  EXPECT_EQ(bodies_[0].at("messages"), (json::array{{{"role", "user"}, {"content", "hello"}}}));
  EXPECT_EQ(bodies_[0].at("max_completion_tokens"), 3);
}

TEST_F(LoadRun, WhatFailsIsSaidAndTheOthersGoOn) {
  std::atomic<int> calls = 0;
  serve([&](std::shared_ptr<http::Exchange> e) {
    switch (calls++) {
      case 0:
        return e->respond({.status = 429, .body = "full"});
      case 1:
        e->start_stream({.content_type = "text/event-stream"});
        e->write(piece("half"));
        return e->finish();
      case 2:
        e->start_stream({.content_type = "text/event-stream"});
        e->write(http::sse_event(R"({"error":{"message":"out of luck"}})"));
        return e->finish();
      default:
        e->start_stream({.content_type = "text/event-stream"});
        e->write(piece("x"));
        e->write(http::sse_event("[DONE]"));
        e->finish();
    }
  });
  options_.max_concurrency = 1;
  const LoadResult result = run(4);
  EXPECT_THAT(result.answers[0].error, HasSubstr("HTTP 429: full"));
  EXPECT_THAT(result.answers[1].error, HasSubstr("before [DONE]"));
  EXPECT_EQ(result.answers[2].error, "out of luck");
  EXPECT_EQ(result.answers[3].error, "");
  EXPECT_EQ(result.answers[3].times.output_tokens, 1) << "pieces count where no usage comes";
}

TEST_F(LoadRun, NobodyThereIsAnErrorOfEachRequest) {
  serve_answers();
  server_.reset();
  for (const LoadAnswer& a : run(3).answers) EXPECT_NE(a.error, "");
}

TEST_F(LoadRun, NoMoreThanTheLimitAreOpenAndNoneGoesBeforeItIsDue) {
  std::atomic<int> open = 0, most = 0;
  serve([&](std::shared_ptr<http::Exchange> e) {
    const int now = ++open;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::thread([&open, e] {
      e->start_stream({.content_type = "text/event-stream"});
      e->write(piece("x"));
      e->write(http::sse_event("[DONE]"));
      --open;
      e->finish();
    }).detach();
  });
  options_.max_concurrency = 2;
  const std::int64_t began_us = now_us();
  const LoadResult result = run(20, {0, 0, 0, 30'000});
  for (const LoadAnswer& a : result.answers) EXPECT_EQ(a.error, "");
  EXPECT_LE(most, 2);
  EXPECT_GE(result.answers[3].times.sent_us - began_us, 30'000);
}

}  // namespace
}  // namespace octavo::traffic
