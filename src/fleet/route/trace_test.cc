// Tests of the router's trace spans, and of the trace context for workers.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr const char* kUnsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

class RouteTraceTest : public RouterTest {
 protected:
  RouteTraceTest()
      : collector_("collector", [this](auto e) {
          const std::lock_guard lock(mutex_);
          const json::value body = json::parse(e->request().body);
          for (const json::value& span : body.at_pointer("/resourceSpans/0/scopeSpans/0/spans").as_array())
            spans_.push_back(span);
          e->respond({.body = "{}"});
        }) {}
  std::shared_ptr<Tracer> tracer() { return Tracer::start(collector_.url() + "/v1/traces", "tests").value(); }
  std::vector<json::value> spans() {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

  std::mutex mutex_;
  std::vector<json::value> spans_;
  Replica collector_;
};

TEST_F(RouteTraceTest, EachCallToAWorkerIsASpanBelowTheRequests) {
  std::vector<std::string> contexts;
  std::mutex mutex;
  const auto note = [&](auto e, int status) {
    const std::lock_guard lock(mutex);
    contexts.emplace_back(e->request().headers.find("traceparent").value_or(""));
    e->respond({.status = status, .body = "{}"});
  };
  Replica broken("b", [&](auto e) { note(e, 503); });
  Replica well("w", [&](auto e) { note(e, 200); });
  route({broken.url(), well.url()}, {.retry = {.attempts_max = 2}, .telemetry = {.tracer = tracer()}});
  while (broken.requests == 0) EXPECT_EQ(post("{}", {{"traceparent", kSampled}}).status, 200);
  const std::size_t calls = static_cast<std::size_t>(broken.requests + well.requests);
  wait([&] { return spans().size() == calls + static_cast<std::size_t>(well.requests.load()); });
  const auto all = spans();
  const json::value& request = all.back();
  EXPECT_EQ(request.at("name"), "route");
  EXPECT_EQ(request.at("parentSpanId"), "00f067aa0ba902b7");
  for (const std::size_t i : {all.size() - 3, all.size() - 2}) {
    EXPECT_EQ(all[i].at("traceId"), kTrace);
    EXPECT_EQ(all[i].at("parentSpanId"), request.at("spanId")) << "of the refused call and of the second";
    EXPECT_EQ(all[i].at("kind"), 3);
  }
  EXPECT_THAT(contexts.back(), HasSubstr(all[all.size() - 2].at("spanId").as_string().c_str()));
}

TEST_F(RouteTraceTest, ATraceThatNobodyRecordsIsPassedOn) {
  std::vector<std::string> contexts;
  Replica a("a", [&](auto e) {
    contexts.emplace_back(e->request().headers.find("traceparent").value_or("none"));
    e->respond({.body = "{}"});
  });
  route({a.url()}, {.telemetry = {.tracer = tracer()}});
  post("{}", {{"traceparent", kUnsampled}});
  post("{}");
  wait([&] { return spans().size() == 2; });
  EXPECT_EQ(contexts[0], kUnsampled);
  EXPECT_TRUE(contexts[1].ends_with("-01")) << "a new trace: " << contexts[1];
  route({a.url()});
  post("{}", {{"traceparent", kSampled}});
  EXPECT_EQ(contexts[2], kSampled) << "without a collector it goes as it came";
}

}  // namespace
}  // namespace octavo::fleet
