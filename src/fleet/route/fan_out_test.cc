#include "fleet/route/fan_out.h"

#include <gtest/gtest.h>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

TEST(FanOut, OnlyRequestsThatEmptyCachesResetTheIndex) {
  for (const char* path :
       {"/flush_cache", "/reset_prefix_cache", "/update_weights_from_disk", "/update_weights_from_tensor",
        "/finish_weight_update", "/collective_rpc", "/sleep", "/release_memory_occupation"})
    EXPECT_TRUE(empties_caches(path)) << path;
  for (const char* path : {"/init_weights_update_group", "/init_weight_transfer_engine",
                           "/start_weight_update", "/update_weight_version", "/weights_checker",
                           "/send_weights_to_remote_instance", "/pause", "/wake_up"})
    EXPECT_FALSE(empties_caches(path)) << path;
}

TEST_F(RouterTest, AModelIsLoadedInAllReplicasThatServeIt) {
  Replica a("lora-a"), b("lora-b");
  route({a.url(), b.url()});
  EXPECT_EQ(connect().post_json("/models/m/load", "")->status, 200);
  EXPECT_EQ(connect().post_json("/models/m/unload/", "")->status, 200);
  EXPECT_EQ(connect().post_json("/models/lora-b/unload", "")->status, 200);
  EXPECT_EQ(a.requests, 2);
  EXPECT_EQ(b.requests, 3);
  const http::Response unknown = *connect().post_json("/models/nobody's/load", "");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_TRUE(unknown.body.contains("The model `nobody's` does not exist.")) << unknown.body;
}

TEST_F(RouterTest, OllamaLoadsAModelInAllReplicasThatServeIt) {
  Replica a("lora-a"), b("lora-b", [](const std::shared_ptr<http::Exchange>& exchange) {
    const bool broken = exchange->request().body.contains("lora-b");
    exchange->respond({.status = broken ? 500 : 200, .body = "{}"});
  });
  route({a.url(), b.url()});
  EXPECT_EQ(connect().post_json("/api/generate", R"({"model":"m","keep_alive":0})")->status, 200);
  EXPECT_EQ(connect().post_json("/api/chat", R"({"model":"m:latest","messages":[]})")->status, 200);
  EXPECT_EQ(a.requests, 2);
  EXPECT_EQ(b.requests, 2);
  EXPECT_EQ(connect().post_json("/api/generate", R"({"model":"lora-b","keep_alive":0})")->status, 500);
  EXPECT_EQ(a.requests, 2);
  EXPECT_EQ(connect().post_json("/api/generate", R"({"model":"x","keep_alive":0})")->status, 404);
  EXPECT_EQ(a.requests + b.requests, 5);
  EXPECT_EQ(connect().post_json("/api/generate", R"({"model":"m","prompt":"Hi","keep_alive":0})")->status,
            200);
  EXPECT_EQ(a.requests + b.requests, 6) << "one replica answers a prompt";
}

}  // namespace
}  // namespace octavo::fleet
