#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

class BillTest : public RouterTest {
 protected:
  // Waits until the tenant has exactly one charged request, with these output tokens.
  void expect_charge(int output_tokens) {
    const std::string requests = "octavo_route_tenant_finished_requests_total{tenant=\"anonymous\"} 1\n";
    wait([&] { return get("/metrics").body.find(requests) != std::string::npos; });
    EXPECT_NE(get("/metrics")
                  .body.find(fmt::format(
                      "octavo_route_tenant_output_tokens_total{{tenant=\"anonymous\"}} {}\n", output_tokens)),
              std::string::npos)
        << get("/metrics").body;
  }
};

// Never ends the response.
void keep(const std::shared_ptr<http::Exchange>& e) {
  e->on_close([e](http::CloseReason) {});
}

void begin_stream(const std::shared_ptr<http::Exchange>& e) {
  e->start_stream({.content_type = "text/event-stream"});
  e->write("data: 1\n\n");
  keep(e);
}

TEST_F(BillTest, TheCostOfAClientThatLeavesIsReadFromTheWorker) {
  Replica a("a", begin_stream);
  a.unread_cost = "output_tokens=5";
  route({a.url()});
  {
    http::Client client = connect();
    ASSERT_EQ(client.open("POST", "/v1/completions", "{}")->status, 200);
    ASSERT_EQ(**client.read(), "data: 1\n\n");
  }
  expect_charge(5);
  EXPECT_EQ(a.costs_read, 2) << "the first reading is too early";
}

TEST_F(BillTest, TheCostOfAStreamWithoutCommentsIsReadFromTheWorker) {
  Replica a("a", [](const auto& e) {
    e->start_stream({.content_type = "application/x-ndjson"});
    e->write("{\"done\":true}\n");
    e->finish();
  });
  a.unread_cost = "output_tokens=3";
  route({a.url()});
  EXPECT_EQ(connect().request("POST", "/api/chat", "{}")->body, "{\"done\":true}\n");
  expect_charge(3);
}

TEST_F(BillTest, AHedgedRequestPaysBothWorkers) {
  Replica slow("slow", keep), fast("fast", [](const auto& e) {
    e->respond({.headers = {{std::string(kCostHeader), "output_tokens=2"}}, .body = "{}"});
  });
  slow.unread_cost = fast.unread_cost = "output_tokens=7";
  // The fast worker answers earlier, so that only a request of the slow worker is hedged.
  route({slow.url(), fast.url()}, {.retry = {.hedge_after_ms = 1000}});
  int others = 0;  // requests that only the fast worker got
  for (; slow.requests == 0; ++others) EXPECT_EQ(post("{}").status, 200);
  --others;
  const std::string tokens =
      fmt::format("octavo_route_tenant_output_tokens_total{{tenant=\"anonymous\"}} {}\n", 2 * others + 2 + 7);
  wait([&] { return get("/metrics").body.find(tokens) != std::string::npos; });
  EXPECT_EQ(fast.costs_read, 0) << "its response reports the cost";
}

TEST_F(BillTest, AnotherEngineIsAskedOnceAndNotCharged) {
  Replica a("a", begin_stream);
  route({a.url()});
  {
    http::Client client = connect();
    ASSERT_EQ(client.open("POST", "/v1/completions", "{}")->status, 200);
    ASSERT_EQ(**client.read(), "data: 1\n\n");
  }
  wait([&] { return a.costs_read == 1; });
  EXPECT_EQ(get("/metrics").body.find("finished_requests_total{tenant"), std::string::npos);
}

}  // namespace
}  // namespace octavo::fleet
