#include "fleet/discover/event_addresses.h"

#include <gtest/gtest.h>

#include "fleet/discover/worker_record.h"

namespace octavo::fleet {
namespace {

TEST(EventAddresses, EachRankOfAnAddressHasTheNextPort) {
  std::vector<Endpoint> endpoints{{.name = "10.0.0.1:8000"},
                                  {.name = "10.0.0.2:8000", .labels = {{"app", "other"}}},
                                  {.name = "10.0.0.1:8001"},
                                  {.name = "10.0.0.3:8000", .kv_events_endpoint = "tcp://10.0.0.3:7000"}};
  for (Endpoint& endpoint : endpoints) endpoint.labels.try_emplace("app", "llm");
  add_event_addresses(endpoints, {.live = 5557, .replay = 5600}, {{"app", "llm"}});
  EXPECT_EQ(endpoints[0].kv_events_endpoint, "tcp://10.0.0.1:5557");
  EXPECT_EQ(endpoints[0].kv_replay_endpoint, "tcp://10.0.0.1:5600");
  EXPECT_EQ(endpoints[1].kv_events_endpoint, "");
  EXPECT_EQ(endpoints[2].kv_events_endpoint, "tcp://10.0.0.1:5558");
  EXPECT_EQ(endpoints[2].kv_replay_endpoint, "tcp://10.0.0.1:5601");
  EXPECT_EQ(endpoints[3].kv_events_endpoint, "tcp://10.0.0.3:7000") << "its own counts";
  EXPECT_EQ(endpoints[3].kv_replay_endpoint, "");
}

TEST(EventAddresses, AWorkerOfEtcdSaysItsOwn) {
  const auto worker = read_worker(
      R"({"url": "http://10.0.0.1:8000", "role": "decode", "models": ["m"], "kv_events": "tcp://10.0.0.1:5557,tcp://10.0.0.1:5558"})");
  ASSERT_TRUE(worker) << worker.error().message;
  EXPECT_EQ(worker->kv_events_endpoint, "tcp://10.0.0.1:5557");
  EXPECT_EQ(worker->kv_replay_endpoint, "tcp://10.0.0.1:5558");
  EXPECT_EQ(worker->models, std::vector<std::string>{"m"});
  for (const char* wrong :
       {"7", "\"http://a:1\"", "\"tcp://a\"", "\"tcp://a:0\"", "\"tcp://a:1,\"", "\"ipc://\""})
    EXPECT_EQ(read_worker(fmt::format(R"({{"url": "http://a:1", "kv_events": {}}})", wrong)).error().field,
              "kv_events")
        << wrong;
  EXPECT_EQ(read_worker(R"({"url": "http://a:1", "models": "m"})").error().field, "models");
}

}  // namespace
}  // namespace octavo::fleet
