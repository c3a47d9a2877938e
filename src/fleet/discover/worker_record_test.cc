#include "fleet/discover/worker_record.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace octavo::fleet {
namespace {

TEST(WorkerRecord, IsReadAsItWasWritten) {
  const Endpoint worker{.name = "10.0.0.1:8000",
                        .url = "http://10.0.0.1:8000",
                        .models = {"a", "b"},
                        .role = Role::prefill,
                        .labels = {{"topology.kubernetes.io/zone", "a"}},
                        .kv_events_endpoint = "tcp://10.0.0.1:5557",
                        .kv_replay_endpoint = "tcp://10.0.0.1:5558",
                        .ranks = 2,
                        .block_size = 32};
  EXPECT_EQ(read_worker(boost::json::serialize(write_worker(worker))).value(), worker);
  const Endpoint bare{.name = "h:80", .url = "https://h:80"};
  EXPECT_EQ(read_worker(boost::json::serialize(write_worker(bare))).value(), bare);
  EXPECT_EQ(read_worker("https://h:80").value(), bare);
}

TEST(WorkerRecord, TheHostOfOthersReplacesAny) {
  const Endpoint worker = at_host({.url = "http://*:8000",
                                   .kv_events_endpoint = "tcp://*:5557",
                                   .kv_replay_endpoint = "tcp://10.0.0.9:5558"},
                                  "[::1]");
  EXPECT_EQ(worker.name, "[::1]:8000");
  EXPECT_EQ(worker.url, "http://[::1]:8000");
  EXPECT_EQ(worker.kv_events_endpoint, "tcp://[::1]:5557");
  EXPECT_EQ(worker.kv_replay_endpoint, "tcp://10.0.0.9:5558");
}

TEST(WorkerRecord, AWrongFieldIsNamed) {
  const auto field = [](std::string_view rest) {
    return read_worker(fmt::format(R"({{"url": "http://h:1", {}}})", rest)).error().field;
  };
  EXPECT_EQ(field(R"("role": "both of them")"), "role");
  EXPECT_EQ(field(R"("models": [1])"), "models");
  EXPECT_EQ(field(R"("labels": {"zone": 1})"), "labels");
  EXPECT_EQ(field(R"("labels": ["zone"])"), "labels");
  EXPECT_EQ(field(R"("kv_events": 5557)"), "kv_events");
  EXPECT_EQ(field(R"("kv_events": "tcp://h")"), "kv_events");
  EXPECT_EQ(field(R"("block_size": 0)"), "block_size");
  EXPECT_EQ(field(R"("ranks": 1e9)"), "ranks");
  EXPECT_EQ(read_worker("{}").error().field, "url");
  EXPECT_EQ(read_worker("ftp://x").error().field, "url");
  EXPECT_TRUE(read_worker(R"({"url": "http://h:1", "role": null, "ranks": null, "more": 1})"));
}

}  // namespace
}  // namespace octavo::fleet
