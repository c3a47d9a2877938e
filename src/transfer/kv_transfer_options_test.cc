#include "transfer/kv_transfer_options.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(KvTransferOptions, ReadsVllmsFields) {
  const KvTransferOptions o =
      parse_kv_transfer_config(
          R"({"kv_connector": "NixlConnector", "kv_role": "kv_producer", "engine_id": "p0",
                                   "kv_buffer_device": "cpu", "kv_load_failure_policy": "recompute", "kv_rank": null,
                                   "kv_connector_extra_config": {"kv_lease_duration": 5, "side_channel_host": "::1",
                                     "side_channel_port": 7, "kv_recompute_threshold": 64, "backends": ["UCX"],
                                     "transport": "tcp"}})")
          .value();
  EXPECT_TRUE(o.enabled && o.produces && !o.consumes && !o.shared_memory);
  EXPECT_EQ(o.engine_id, "p0");
  EXPECT_EQ(o.host, "::1");
  EXPECT_EQ(o.port, 7);
  EXPECT_EQ(o.lease_seconds, 5);
  EXPECT_EQ(o.recompute_threshold, 64);
  const KvTransferOptions both =
      parse_kv_transfer_config(R"({"kv_connector": "OctavoConnector", "kv_role": "kv_both"})").value();
  EXPECT_TRUE(both.produces && both.consumes && both.shared_memory);
  EXPECT_EQ(both.port, std::nullopt);
}

TEST(KvTransferOptions, ErrorsNameTheField) {
  const auto field = [](std::string_view json) { return parse_kv_transfer_config(json).error().field; };
  EXPECT_EQ(field("[]"), "kv_transfer_config");
  EXPECT_EQ(field(R"({"kv_role": "kv_both"})"), "kv_connector");
  EXPECT_EQ(field(R"({"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"})"), "kv_connector");
  EXPECT_EQ(field(R"({"kv_connector": "NixlConnector"})"), "kv_role");
  EXPECT_EQ(field(R"({"kv_connector": "NixlConnector", "kv_role": "both"})"), "kv_role");
  EXPECT_EQ(field(R"({"kv_connector": 1})"), "kv_connector");
  EXPECT_EQ(field(R"({"kv_conector": "NixlConnector"})"), "kv_transfer_config");
  EXPECT_EQ(field(R"({"kv_load_failure_policy": "fail"})"), "kv_load_failure_policy");
  EXPECT_EQ(field(R"({"kv_connector_extra_config": 1})"), "kv_connector_extra_config");
  EXPECT_EQ(field(R"({"kv_connector_extra_config": {"x": 1}})"), "kv_connector_extra_config");
  EXPECT_EQ(field(R"({"kv_connector_extra_config": {"side_channel_port": 65536}})"),
            "kv_connector_extra_config.side_channel_port");
  EXPECT_EQ(field(R"({"kv_connector_extra_config": {"kv_lease_duration": 0}})"),
            "kv_connector_extra_config.kv_lease_duration");
}

}  // namespace
}  // namespace octavo
