#include "transfer/kv_transfer_options.h"

#include <fmt/format.h>
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
  EXPECT_TRUE(o.enabled && o.produces && !o.consumes && !o.one_host);
  EXPECT_EQ(o.engine_id, "p0");
  EXPECT_EQ(o.host, "::1");
  EXPECT_EQ(o.port, 7);
  EXPECT_EQ(o.lease_seconds, 5);
  EXPECT_EQ(o.recompute_threshold, 64);
  const KvTransferOptions both =
      parse_kv_transfer_config(R"({"kv_connector": "OctavoConnector", "kv_role": "kv_both"})").value();
  EXPECT_TRUE(both.produces && both.consumes && both.one_host);
  EXPECT_EQ(both.port, std::nullopt);
  const KvTransferOptions ucx =
      parse_kv_transfer_config(
          R"({"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"transport": "ucx"}})")
          .value();
  EXPECT_TRUE(ucx.ucx && !ucx.one_host);
  EXPECT_EQ(ucx.nixl_backend, "");
  const KvTransferOptions nixl = parse_kv_transfer_config(
                                     R"({"kv_connector": "NixlConnector", "kv_role": "kv_consumer",
              "kv_connector_extra_config": {"transport": "nixl", "nixl_library": "/a/libnixl_capi.so"}})")
                                     .value();
  EXPECT_EQ(nixl.nixl_backend, "UCX");
  EXPECT_EQ(nixl.nixl_library, "/a/libnixl_capi.so");
}

TEST(KvTransferOptions, ErrorsNameTheField) {
  const auto field = [](std::string_view json) { return parse_kv_transfer_config(json).error().field; };
  EXPECT_EQ(field("[]"), "kv_transfer_config");
  EXPECT_EQ(field(R"({"kv_role": "kv_both"})"), "kv_connector");
  EXPECT_EQ(field(R"({"kv_connector": "FlexKVConnectorV1", "kv_role": "kv_both"})"), "kv_connector");
  EXPECT_EQ(field(R"({"kv_connector": "NixlConnector"})"), "kv_role");
  EXPECT_EQ(field(R"({"kv_connector": "NixlConnector", "kv_role": "both"})"), "kv_role");
  EXPECT_EQ(field(R"({"kv_connector": 1})"), "kv_connector");
  EXPECT_EQ(field(R"({"kv_conector": "NixlConnector"})"), "kv_transfer_config");
  EXPECT_EQ(field(R"({"kv_load_failure_policy": "fail"})"), "kv_load_failure_policy");
  EXPECT_EQ(field(R"({"kv_connector_extra_config": 1})"), "kv_connector_extra_config");
  const auto extra = [&](std::string_view connector, std::string_view config) {
    return field(
        fmt::format(R"({{"kv_connector": "{}", "kv_role": "kv_both", "kv_connector_extra_config": {}}})",
                    connector, config));
  };
  EXPECT_EQ(extra("NixlConnector", R"({"x": 1})"), "kv_connector_extra_config");
  EXPECT_EQ(extra("NixlConnector", R"({"side_channel_port": 65536})"),
            "kv_connector_extra_config.side_channel_port");
  EXPECT_EQ(extra("NixlConnector", R"({"kv_lease_duration": 0})"),
            "kv_connector_extra_config.kv_lease_duration");
  EXPECT_EQ(extra("NixlConnector", R"({"transport": "ib"})"), "kv_connector_extra_config.transport");
  EXPECT_EQ(extra("NixlConnector", R"({"transport": "nixl"})"), "kv_connector_extra_config.transport");
  EXPECT_EQ(extra("NixlConnector", R"({"backends": ["UCX", "GDS"]})"), "kv_connector_extra_config.backends");
  EXPECT_EQ(extra("SharedStorageConnector", R"({"shared_storage_path": "http://host"})"),
            "kv_connector_extra_config.shared_storage_path");
  EXPECT_EQ(extra("SharedStorageConnector", "{}"), "kv_connector_extra_config.shared_storage_path");
  EXPECT_EQ(extra("SharedStorageConnector", R"({"shared_storage_path": "a", "bytes_to_use": 0})"),
            "kv_connector_extra_config.bytes_to_use");
  for (const char* bytes : {"{}", R"({"cpu_bytes_to_use": 0})", R"({"cpu_bytes_to_use": -1})",
                            R"({"spec_name": "CPUOffloadingSpec"})"})
    EXPECT_EQ(extra("OffloadingConnector", bytes), "kv_connector_extra_config.cpu_bytes_to_use") << bytes;
  EXPECT_EQ(extra("OffloadingConnector", R"({"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 1})"),
            "kv_connector_extra_config.secondary_tiers");
  EXPECT_EQ(extra("OffloadingConnector", R"({"spec_name": "CPUOffloadingSpec", "cpu_bytes_to_use": 1,
                                             "secondary_tiers": [{"type": "fs", "root_dir": "/b"}]})"),
            "kv_connector_extra_config.secondary_tiers");
  EXPECT_EQ(extra("OffloadingConnector", R"({"spec_name": "GPUOffloadingSpec"})"),
            "kv_connector_extra_config.spec_name");
  EXPECT_EQ(extra("OffloadingConnector", R"({"cpu_bytes_to_use": 1, "offload_prompt_only": 0})"),
            "kv_connector_extra_config.offload_prompt_only");
  EXPECT_EQ(extra("OffloadingConnector", R"({"cpu_bytes_to_use": 1, "block_size": 0})"),
            "kv_connector_extra_config.block_size");
  EXPECT_EQ(extra("OffloadingConnector", R"({"secondary_tiers": [{"type": "obj"}]})"),
            "kv_connector_extra_config.secondary_tiers");
  EXPECT_EQ(extra("MultiConnector", R"({"connectors": [{"kv_connector": "MultiConnector"}]})"),
            "kv_connector_extra_config.connectors");
  EXPECT_EQ(field(R"({"kv_connector": "SharedStorageConnector", "kv_role": "kv_producer",
                      "kv_connector_extra_config": {"shared_storage_path": "a"}})"),
            "kv_role");
}

TEST(KvTransferOptions, ReadsTiers) {
  const KvTransferOptions shared =
      parse_kv_transfer_config(R"({"kv_connector": "SharedStorageConnector", "kv_role": "kv_both",
                                   "kv_connector_extra_config": {"shared_storage_path": "/a", "bytes_to_use": 9}})")
          .value();
  EXPECT_TRUE(shared.enabled && !shared.produces && !shared.consumes);
  EXPECT_EQ(shared.tier->path_or_url, "/a");
  EXPECT_EQ(shared.tier->bytes, 9);
  const KvTransferOptions offloading =
      parse_kv_transfer_config(
          R"({"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {
               "spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 1000, "eviction_policy": "lru",
               "store_threshold": 2, "max_tracker_size": 7,
               "secondary_tiers": [{"type": "fs", "root_dir": "/b", "n_read_threads": 16, "load_always": true}]}})")
          .value();
  EXPECT_EQ(offloading.tier->path_or_url, "/b");
  EXPECT_EQ(offloading.tier->host_bytes, 1000);
  EXPECT_EQ(offloading.tier->store_threshold, 2);
  EXPECT_EQ(offloading.tier->max_tracker_size, 7);
  EXPECT_TRUE(offloading.tier->load_always);
  EXPECT_EQ(offloading.tier->eviction, EvictionPolicy::lru);
}

TEST(KvTransferOptions, WhatIsBelowHostMemoryMayBeCompressed) {
  const auto options = [](std::string_view connector, std::string_view extra) {
    return parse_kv_transfer_config(fmt::format(
        R"({{"kv_connector": "{}", "kv_role": "kv_both", "kv_connector_extra_config": {{{}}}}})", connector, extra));
  };
  const auto shared = [&](std::string_view compression) {
    return options("SharedStorageConnector", fmt::format(R"("shared_storage_path": "redis://a:1"{})", compression));
  };
  EXPECT_EQ(shared("")->tier->compression, BlockCompression::none);
  EXPECT_EQ(shared(R"(, "compression": null)")->tier->compression, BlockCompression::none);
  EXPECT_EQ(shared(R"(, "compression": "int8")")->tier->compression, BlockCompression::int8);
  EXPECT_EQ(shared(R"(, "compression": "fp8")")->tier->compression, BlockCompression::fp8);
  const auto tiered = [&](std::string_view compression) {
    return options("OffloadingConnector",
                   fmt::format(R"("secondary_tiers": [{{"type": "fs", "root_dir": "/b", "compression": {}}}])", compression));
  };
  EXPECT_EQ(tiered(R"("fp8")")->tier->compression, BlockCompression::fp8);
  EXPECT_EQ(tiered("null")->tier->compression, BlockCompression::none);
  EXPECT_EQ(shared(R"(, "compression": "zstd")").error().field, "kv_connector_extra_config.compression");
  EXPECT_EQ(shared(R"(, "compression": "none")").error().code, ErrorCode::unsupported);
  EXPECT_EQ(tiered("8").error().field, "kv_connector_extra_config.secondary_tiers.compression");
  EXPECT_EQ(options("OffloadingConnector", R"("cpu_bytes_to_use": 9, "compression": "int8")").error().field,
            "kv_connector_extra_config")
      << "host memory is not";
}

TEST(KvTransferOptions, HostMemoryIsATier) {
  for (const char* spec : {"", R"("spec_name": "CPUOffloadingSpec",)"}) {
    const KvTransferOptions host =
        parse_kv_transfer_config(
            fmt::format(
                R"({{"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {{
                 {} "cpu_bytes_to_use": 1000, "block_size": 64, "eviction_policy": "arc", "store_threshold": 3,
                 "offload_prompt_only": false, "self_describing_kv_events": false}}}})",
                spec))
            .value();
    EXPECT_FALSE(host.tier->prompt_only);
    EXPECT_TRUE(host.enabled && !host.produces && !host.consumes);
    EXPECT_EQ(host.tier->host_bytes, 1000);
    EXPECT_EQ(host.tier->path_or_url, "");
    EXPECT_EQ(host.tier->eviction, EvictionPolicy::arc);
    EXPECT_EQ(host.tier->store_threshold, 3);
  }
}

TEST(KvTransferOptions, ReadsLMCachesSizes) {
  const auto read = [](std::string_view extra) {
    return parse_kv_transfer_config(fmt::format(
        R"({{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both", "kv_connector_extra_config": {{{}}}}})",
        extra));
  };
  const KvTransferOptions host =
      read(R"("lmcache.local_cpu": true, "lmcache.max_local_cpu_size": 2.5, "lmcache.chunk_size": 256)")
          .value();
  EXPECT_TRUE(host.enabled && !host.produces && !host.consumes);
  EXPECT_EQ(host.tier->host_bytes, (std::int64_t{5} << 30) / 2);
  EXPECT_EQ(host.tier->path_or_url, "");
  const KvTransferOptions both =
      read(
          R"("lmcache.max_local_cpu_size": 1, "lmcache.local_disk": "file:///a/b", "lmcache.max_local_disk_size": 20,
              "lmcache.remote_url": null, "lmcache.cache_policy": "LRU")")
          .value();
  EXPECT_EQ(both.tier->host_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(both.tier->path_or_url, "/a/b");
  EXPECT_EQ(both.tier->bytes, std::int64_t{20} << 30);
  const KvTransferOptions store =
      read(
          R"("lmcache.local_cpu": false, "lmcache.max_local_cpu_size": 5, "lmcache.remote_url": "redis://a:1")")
          .value();
  EXPECT_EQ(store.tier->host_bytes, 0);
  EXPECT_EQ(store.tier->path_or_url, "redis://a:1");

  const auto field = [&](std::string_view extra) {
    const auto options = read(extra);
    return options ? "" : options.error().field;
  };
  const std::string all = "kv_connector_extra_config";
  EXPECT_EQ(field(""), all + ".lmcache.max_local_cpu_size") << "nothing says where";
  EXPECT_EQ(field(R"("lmcache.local_cpu": false, "lmcache.max_local_cpu_size": 5)"),
            all + ".lmcache.max_local_cpu_size");
  for (const char* size : {"0", "-1", "1e9", "\"5\""})
    EXPECT_EQ(field(fmt::format(R"("lmcache.max_local_cpu_size": {})", size)),
              all + ".lmcache.max_local_cpu_size")
        << size;
  EXPECT_EQ(field(R"("lmcache.remote_url": "lm://a:1")"), all + ".lmcache.remote_url");
  EXPECT_EQ(field(R"("lmcache.local_disk": "redis://a:1")"), all + ".lmcache.local_disk");
  EXPECT_EQ(field(R"("lmcache.local_disk": "/a", "lmcache.remote_url": "redis://a:1")"),
            all + ".lmcache.remote_url");
  EXPECT_EQ(field(R"("lmcache.max_local_cpu_size": 1, "lmcache.cache_policy": "LFU")"),
            all + ".lmcache.cache_policy");
  EXPECT_EQ(field(R"("lmcache.enable_blending": true)"), all);
  EXPECT_EQ(field(R"("local_cpu": true)"), all);
}

TEST(KvTransferOptions, FoldersEvictByAPolicy) {
  const auto options = [](std::string_view policy, std::string_view path_or_url) {
    return parse_kv_transfer_config(fmt::format(
        R"({{"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {{
             "eviction_policy": "{}", "secondary_tiers": [{{"type": "fs", "root_dir": "{}"}}]}}}})",
        policy, path_or_url));
  };
  EXPECT_EQ(options("arc", "/b")->tier->eviction, EvictionPolicy::arc);
  EXPECT_TRUE(options("lru", "redis://a:1"));
  for (const auto& wrong : {options("mru", "/b"), options("arc", "redis://a:1")}) {
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().field, "kv_connector_extra_config.eviction_policy");
    EXPECT_EQ(wrong.error().code, ErrorCode::unsupported);
  }
}

TEST(KvTransferOptions, DirectIoIsOfFolders) {
  const auto read = [](std::string_view connector, std::string_view extra) {
    return parse_kv_transfer_config(
        fmt::format(R"({{"kv_connector": "{}", "kv_role": "kv_both", "kv_connector_extra_config": {{{}}}}})", connector,
                    extra));
  };
  const auto shared = [&](std::string_view path_or_url) {
    return read("SharedStorageConnector",
                fmt::format(R"("shared_storage_path": "{}", "use_odirect": true)", path_or_url));
  };
  const auto tier = [&](std::string_view path_or_url) {
    return read("OffloadingConnector",
                fmt::format(R"("secondary_tiers": [{{"type": "fs", "root_dir": "{}", "use_odirect": true}}])",
                            path_or_url));
  };
  const auto lmcache = [&](std::string_view path_or_url) {
    return read("LMCacheConnectorV1",
                fmt::format(R"({}, "lmcache.extra_config": {{"use_odirect": true}})", path_or_url));
  };
  for (const auto& good : {shared("/a"), tier("/a"), lmcache(R"("lmcache.local_disk": "/a")")})
    EXPECT_TRUE(good.value().tier->use_odirect);
  EXPECT_FALSE(read("SharedStorageConnector", R"("shared_storage_path": "/a")").value().tier->use_odirect);
  const std::string all = "kv_connector_extra_config";
  EXPECT_EQ(shared("redis://a:1").error().field, all + ".use_odirect");
  EXPECT_EQ(tier("redis://a:1").error().field, all + ".secondary_tiers.use_odirect");
  for (const char* path_or_url :
       {R"("lmcache.remote_url": "redis://a:1")", R"("lmcache.max_local_cpu_size": 1)"})
    EXPECT_EQ(lmcache(path_or_url).error().field, all + ".lmcache.extra_config.use_odirect") << path_or_url;
  EXPECT_EQ(read("LMCacheConnectorV1", R"("lmcache.local_disk": "/a", "lmcache.extra_config": {"x": 1})").error().field,
            all);
}

TEST(KvTransferOptions, AModuleIsASharedLibrary) {
  const auto options = parse_kv_transfer_config(
      R"({"kv_connector": "Mine", "kv_connector_module_path": "/nowhere/libmine.so", "kv_role": "kv_both"})");
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().field, "kv_connector_module_path");
}

TEST(KvTransferOptions, SeveralConnectorsAreOneOfEachKind) {
  const auto multi = [](std::string_view connectors) {
    return parse_kv_transfer_config(fmt::format(
        R"({{"kv_connector": "MultiConnector", "kv_role": "kv_both", "engine_id": "outer",
             "kv_connector_extra_config": {{"connectors": [{}]}}}})",
        connectors));
  };
  constexpr std::string_view kDisk = R"({"kv_connector": "ExampleConnector", "kv_role": "kv_both",
                                         "kv_connector_extra_config": {"shared_storage_path": "/a"}})";
  constexpr std::string_view kPeers = R"({"kv_connector": "NixlConnector", "kv_role": "kv_consumer"})";
  for (const std::string& both :
       {fmt::format("{}, {}", kDisk, kPeers), fmt::format("{}, {}", kPeers, kDisk)}) {
    const KvTransferOptions options = multi(both).value();
    EXPECT_TRUE(options.enabled && options.consumes && !options.produces);
    EXPECT_EQ(options.tier->path_or_url, "/a");
    EXPECT_EQ(options.engine_id, "outer");
  }
  EXPECT_EQ(
      multi(R"({"kv_connector": "NixlConnector", "kv_role": "kv_both", "engine_id": "own"})")->engine_id,
      "own");
  EXPECT_FALSE(multi(fmt::format("{}, {}", kDisk, kDisk)));
  EXPECT_FALSE(multi(fmt::format("{}, {}", kPeers, kPeers)));
}

}  // namespace
}  // namespace octavo
