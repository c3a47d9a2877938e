// Tests of the picker's trace spans, and of the trace context for endpoints.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <mutex>

#include "fleet/pick/test_processor.h"
#include "http/server.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kClient = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr std::string_view kUnsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
constexpr std::string_view kGateway = "00-11111111111111111111111111111111-2222222222222222-01";

class DecisionTraceTest : public ProcessorTest {
 protected:
  DecisionTraceTest() {
    collector_ =
        http::Server::start({.port = 0}, [this](std::shared_ptr<http::Exchange> e) {
          const std::lock_guard lock(mutex_);
          const json::value body = json::parse(e->request().body);
          for (const json::value& span : body.at_pointer("/resourceSpans/0/scopeSpans/0/spans").as_array())
            spans_.push_back(span);
          e->respond({.body = "{}"});
        }).value();
  }
  ~DecisionTraceTest() override { processor_.reset(); }

  void begin_traced(int endpoints) {
    const std::string url = fmt::format("http://127.0.0.1:{}/v1/traces", collector_->port());
    begin(endpoints, {.tracer = Tracer::start(url, "tests").value()});
  }
  // Returns the trace context for the endpoint. Returns "none" if the picker does not change it.
  std::string picked(std::map<std::string, std::string> headers, std::string_view gateway = {}) {
    processor_ = std::make_unique<Processor>(*context_, gateway);
    CHECK(send(request_headers(std::move(headers))));
    CHECK(send(request_body(kBody)));
    const auto set = choice_headers();
    return set.contains("traceparent") ? set.at("traceparent") : "none";
  }
  std::vector<json::value> spans() {
    processor_.reset();
    context_.reset();
    const std::lock_guard lock(mutex_);
    return spans_;
  }
  static std::string attribute(const json::value& span, std::string_view key) {
    for (const json::value& each : span.at("attributes").as_array())
      if (each.at("key").as_string() == key) return json::serialize(each.at("value"));
    return "";
  }

  std::mutex mutex_;
  std::vector<json::value> spans_;
  std::unique_ptr<http::Server> collector_;
};

TEST_F(DecisionTraceTest, ADecisionIsASpanOfTheClientsTrace) {
  begin_traced(1);
  const std::string sent = picked({{"traceparent", std::string(kClient)}});
  const auto all = spans();
  ASSERT_EQ(all.size(), 1U);
  const json::value& span = all[0];
  EXPECT_EQ(span.at("name"), "pick");
  EXPECT_EQ(span.at("traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(span.at("parentSpanId"), "00f067aa0ba902b7");
  EXPECT_THAT(sent, HasSubstr(span.at("spanId").as_string().c_str()))
      << "the engine's span is below this one";
  EXPECT_THAT(attribute(span, "octavo.pick.endpoint"), HasSubstr("10.0.0.1:8000"));
  EXPECT_THAT(attribute(span, "gen_ai.request.model"), HasSubstr("\"m\""));
  EXPECT_THAT(attribute(span, "octavo.pick.Scorer.active-request-scorer.seconds"), HasSubstr("doubleValue"));
  EXPECT_THAT(attribute(span, "octavo.pick.Picker.max-score-picker.seconds"), HasSubstr("doubleValue"));
}

TEST_F(DecisionTraceTest, TheGatewaysTraceComesFirst) {
  begin_traced(1);
  const std::string sent = picked({{"traceparent", std::string(kClient)}}, kGateway);
  EXPECT_THAT(sent, StartsWith("00-11111111111111111111111111111111-"));
  EXPECT_EQ(spans().at(0).at("parentSpanId"), "2222222222222222");
}

TEST_F(DecisionTraceTest, WithoutAContextATraceBegins) {
  begin_traced(1);
  EXPECT_THAT(picked({}), EndsWith("-01"));
  EXPECT_EQ(spans().size(), 1U);
}

TEST_F(DecisionTraceTest, TracesThatNobodyRecordsPassUnchanged) {
  begin_traced(1);
  EXPECT_EQ(picked({{"traceparent", std::string(kUnsampled)}}), "none");
  EXPECT_TRUE(spans().empty());
  begin(1);
  EXPECT_EQ(picked({{"traceparent", std::string(kClient)}}), "none");
}

TEST_F(DecisionTraceTest, ARefusalIsASpanToo) {
  begin_traced(0);
  CHECK(send(request_headers()));
  CHECK(send(request_body(kBody)));
  const auto all = spans();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(attribute(all[0], "http.response.status_code"), HasSubstr("503"));
  EXPECT_NE(attribute(all[0], "error.message"), "");
}

}  // namespace
}  // namespace octavo::fleet
