#include "serve/tracing.h"

#include <gmock/gmock.h>

#include <mutex>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

constexpr std::string_view kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// Runs a collector, which stores the received spans in spans_.
class TracingTest : public ServeTest {
 protected:
  TracingTest() {
    collector_ =
        http::Server::start({}, [this](std::shared_ptr<http::Exchange> exchange) {
          const std::lock_guard lock(mutex_);
          EXPECT_EQ(exchange->request().path, "/v1/traces");
          const json::value body = json::parse(exchange->take_body());
          for (const json::value& span : body.at_pointer("/resourceSpans/0/scopeSpans/0/spans").as_array())
            spans_.push_back(span);
          exchange->respond({.body = "{}"});
        }).value();
  }
  std::string endpoint() const { return collector_->address() + "/v1/traces"; }
  bool has_spans(std::size_t count) {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      return spans_.size() >= count;
    });
  }

  std::mutex mutex_;
  std::vector<json::value> spans_;
  std::unique_ptr<http::Server> collector_;
};

std::string value_of(const json::value& span, std::string_view key) {
  for (const json::value& attribute : span.at("attributes").as_array())
    if (attribute.at("key").as_string() == key)
      return json::serialize(attribute.at("value").as_object().begin()->value());
  return "";
}

TEST_F(TracingTest, ASpanForEachAnswer) {
  serve([](const Request&, int) { return Script{.tokens = ending("hello")}; },
        [this](ServeOptions& options, http::ServerOptions&) {
          options.observe.tracer = Tracer::start(endpoint(), "tests").value();
        });
  const auto sent = client().request(
      "POST", "/v1/completions", R"({"prompt":"Once","temperature":0.5,"max_tokens":9,"request_id":"r1"})",
      {{"Content-Type", "application/json"}, {"traceparent", std::string(kParent)}});
  EXPECT_EQ(sent.value().status, 200);
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"n":2})").status, 200);
  ASSERT_TRUE(has_spans(3));
  const json::value& span = spans_[0];
  EXPECT_EQ(span.at("name"), "llm_request");
  EXPECT_EQ(span.at("traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(span.at("parentSpanId"), "00f067aa0ba902b7");
  EXPECT_EQ(value_of(span, "gen_ai.request.id"), "\"cmpl-r1\"");
  EXPECT_EQ(value_of(span, "gen_ai.request.max_tokens"), "\"9\"");
  EXPECT_EQ(value_of(span, "gen_ai.usage.prompt_tokens"), "\"4\"");
  EXPECT_EQ(value_of(span, "gen_ai.usage.completion_tokens"), "\"6\"");
  EXPECT_EQ(value_of(span, "gen_ai.response.finish_reason"), "\"stop\"");
  EXPECT_LE(std::stoll(std::string(span.at("startTimeUnixNano").as_string())),
            std::stoll(std::string(span.at("endTimeUnixNano").as_string())));
  EXPECT_EQ(spans_[1].as_object().find("parentSpanId"), spans_[1].as_object().end());
  EXPECT_NE(spans_[1].at("traceId"), span.at("traceId"));
}

TEST_F(TracingTest, PhasesAreBelowTheAnswer) {
  {
    const auto tracer = Tracer::start(endpoint(), "tests").value();
    AnswerSpan answer;
    answer.arrived_us = 90;
    answer.finished_us = 500;
    answer.times = {.arrived_us = 100, .scheduled_us = 200, .first_token_us = 300, .last_token_us = 400};
    record_answer(*tracer, answer, true);
    answer.times = {.arrived_us = 100};
    record_answer(*tracer, answer, true);
    record_answer(*tracer, answer, false);
  }  // the destructor sends the remaining spans
  const auto name = [&](std::size_t i) { return std::string(spans_[i].at("name").as_string()); };
  const auto duration_us = [&](std::size_t i) {
    const auto at = [&](const char* key) { return std::stoll(std::string(spans_[i].at(key).as_string())); };
    return (at("endTimeUnixNano") - at("startTimeUnixNano")) / 1000;
  };
  ASSERT_EQ(spans_.size(), 7U);
  EXPECT_EQ(name(0), "llm_request");
  EXPECT_EQ(name(1), "queue");
  EXPECT_EQ(name(2), "prefill");
  EXPECT_EQ(name(3), "decode");
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(spans_[i].at("parentSpanId"), spans_[0].at("spanId"));
    EXPECT_EQ(spans_[i].at("traceId"), spans_[0].at("traceId"));
    EXPECT_EQ(duration_us(i), 100);
  }
  EXPECT_EQ(name(4), "llm_request");
  EXPECT_EQ(name(5), "queue");
  EXPECT_EQ(duration_us(5), 400) << "until the end of the answer";
  EXPECT_EQ(name(6), "llm_request");
}

TEST_F(TracingTest, WhatNobodyRecordsIsNotSent) {
  {
    const auto tracer = Tracer::start(endpoint(), "tests").value();
    AnswerSpan span;
    span.context = TraceContext{.trace_id = "a", .parent_span = "b", .sampled = false};
    tracer->record(to_span(span));
    span.context.reset();
    span.request_id = "last";
    tracer->record(to_span(span));
  }
  ASSERT_EQ(spans_.size(), 1U);
  EXPECT_EQ(value_of(spans_[0], "gen_ai.request.id"), "\"last\"");
}

TEST(Tracing, EndpointsAreChecked) {
  EXPECT_EQ(Tracer::start("ftp://x/v1/traces", "s").error().field, "otlp-traces-endpoint");
  EXPECT_EQ(Tracer::start("http://localhost:4317", "s").error().field, "otlp-traces-endpoint");
}

TEST(Tracing, GoesOnWithoutACollector) {
  const auto tracer = Tracer::start("http://127.0.0.1:1/v1/traces", "s").value();
  for (int i = 0; i < 3000; ++i) tracer->record({});
}

}  // namespace
}  // namespace octavo
