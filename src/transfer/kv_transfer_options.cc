#include "transfer/kv_transfer_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>

#include "base/json_field.h"
#include "base/quoted_text.h"
#include "transfer/tiers/library_store.h"
#include "transfer/tiers/store_client.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::string_view kExtra = "kv_connector_extra_config";

Result<> read_bytes(const json::value& value, std::string_view field, std::int64_t& out) {
  return read_field(value, field, std::int64_t{1}, std::numeric_limits<std::int64_t>::max(), out);
}

Result<> read_role(const json::value& value, KvTransferOptions& out) {
  std::string role;
  TRY_VOID(read_field(value, "kv_role", role));
  if (role != "kv_producer" && role != "kv_consumer" && role != "kv_both")
    return invalid("kv_role", "must be kv_producer, kv_consumer or kv_both, got {}", quoted_text(role));
  out.produces = role != "kv_consumer";
  out.consumes = role != "kv_producer";
  return {};
}

// Calls take(field name, value) for each field of kv_connector_extra_config.
template <class Take>
Result<> for_extra(const json::object& extra, Take&& take) {
  for (const auto& [key, item] : extra)
    TRY_VOID(take(std::string_view(key), fmt::format("{}.{}", kExtra, std::string_view(key)), item));
  return {};
}

std::unexpected<Error> no_field(std::string_view key) {
  return invalid(kExtra, "the field {} does not exist", quoted_text(key));
}

Result<> read_transport(const json::value& value, std::string_view field, std::string& transport,
                        KvTransferOptions& out) {
  constexpr std::array<std::string_view, 4> kTransports{"auto", "tcp", "ucx", "nixl"};
  TRY_VOID(read_field(value, field, transport));
  if (std::ranges::find(kTransports, transport) == kTransports.end())
    return invalid(field, R"(must be "auto", "tcp", "ucx" or "nixl", got {})", quoted_text(transport));
  out.one_host = transport == "auto";
  out.ucx = transport == "ucx";
  return {};
}

Result<> read_backends(const json::value& value, std::string_view field, std::string& out) {
  if (!value.is_array() || value.get_array().size() != 1)
    return invalid(field, "must be a list with the name of one NIXL plugin");
  return read_field(value.get_array()[0], field, out);
}

Result<> read_nixl(const json::object& extra, KvTransferOptions& out) {
  std::string transport, backend = "UCX";
  const auto take = [&](std::string_view key, const std::string& field, const json::value& item) -> Result<> {
    if (key == "side_channel_host") return read_field(item, field, out.host);
    if (key == "side_channel_port") return read_field(item, field, 0, 65'535, out.port.emplace());
    if (key == "kv_lease_duration") return read_field(item, field, 1, 86'400, out.lease_seconds);
    if (key == "kv_recompute_threshold") return read_field(item, field, 0, 1 << 30, out.recompute_threshold);
    if (key == "transport") return read_transport(item, field, transport, out);
    if (key == "nixl_library") return read_field(item, field, out.nixl_library);
    if (key == "backends") return read_backends(item, field, backend);
    if (key != "num_threads") return no_field(key);  // this field of vLLM's NixlConnector has no effect here
    return {};
  };
  TRY_VOID(for_extra(extra, take));
  if (transport != "nixl") return {};
  if (out.produces)
    return field_failure("kv_connector_extra_config.transport", ErrorCode::unsupported,
                         "\"nixl\" reads blocks of vLLM's prefill servers, so kv_role must be kv_consumer");
  out.nixl_backend = std::move(backend);
  return {};
}

Result<> read_path_or_url(const json::value& value, std::string_view field, std::string& out) {
  TRY_VOID(read_field(value, field, out));
  if (!is_store_url(out)) return {};
  if (const auto store = store_at(out, {}); !store) return invalid(field, "{}", store.error().message);
  return {};
}

Result<> read_compression(const json::value& value, std::string_view field, BlockCompression& out) {
  if (value.is_null()) return {};
  std::string name;
  TRY_VOID(read_field(value, field, name));
  for (const BlockCompression each : {BlockCompression::int8, BlockCompression::fp8}) {
    if (name != kBlockCompressionNames[static_cast<std::size_t>(each)]) continue;
    out = each;
    return {};
  }
  return field_failure(field, ErrorCode::unsupported, R"(must be "int8" or "fp8", or null, got {})", quoted_text(name));
}

Result<> check_odirect(const KvTierOptions& tier, std::string_view field) {
  if (!tier.use_odirect || (!tier.path_or_url.empty() && !is_store_url(tier.path_or_url))) return {};
  return field_failure(field, ErrorCode::unsupported, "must be false unless the tier is a folder");
}

Result<> read_shared_storage(const json::object& extra, KvTransferOptions& out) {
  KvTierOptions& tier = out.tier.emplace();
  const auto take = [&](std::string_view key, const std::string& field, const json::value& item) -> Result<> {
    if (key == "shared_storage_path") return read_path_or_url(item, field, tier.path_or_url);
    if (key == "bytes_to_use") return read_bytes(item, field, tier.bytes);
    if (key == "load_always") return read_field(item, field, tier.load_always);
    if (key == "compression") return read_compression(item, field, tier.compression);
    if (key == "use_odirect") return read_field(item, field, tier.use_odirect);
    return no_field(key);
  };
  TRY_VOID(for_extra(extra, take));
  if (tier.path_or_url.empty())
    return invalid("kv_connector_extra_config.shared_storage_path", "must be given");
  return check_odirect(tier, "kv_connector_extra_config.use_odirect");
}

Result<> read_tier(const json::value& value, KvTierOptions& tier) {
  constexpr std::string_view kField = "kv_connector_extra_config.secondary_tiers";
  if (!value.is_array() || value.get_array().size() != 1 || !value.get_array()[0].is_object())
    return invalid(kField, "must be a list with exactly one JSON object");
  std::string type;
  for (const auto& [key, item] : value.get_array()[0].get_object()) {
    const std::string field = fmt::format("{}.{}", kField, std::string_view(key));
    int threads = 0;
    if (key == "type") {
      TRY_VOID(read_field(item, field, type));
    } else if (key == "root_dir") {
      TRY_VOID(read_path_or_url(item, field, tier.path_or_url));
    } else if (key == "bytes_to_use") {
      TRY_VOID(read_bytes(item, field, tier.bytes));
    } else if (key == "load_always") {
      TRY_VOID(read_field(item, field, tier.load_always));
    } else if (key == "compression") {
      TRY_VOID(read_compression(item, field, tier.compression));
    } else if (key == "use_odirect") {
      TRY_VOID(read_field(item, field, tier.use_odirect));
    } else if (key == "n_read_threads" || key == "n_write_threads") {
      // The number of threads is fixed, so these fields have no effect.
      TRY_VOID(read_field(item, field, 1, 1024, threads));
    } else {
      return invalid(kField, "the field {} does not exist", quoted_text(key));
    }
  }
  if (type != "fs")
    return field_failure(kField, ErrorCode::unsupported, "type must be \"fs\", got {}", quoted_text(type));
  if (tier.path_or_url.empty()) return invalid(kField, "root_dir must be given");
  return check_odirect(tier, "kv_connector_extra_config.secondary_tiers.use_odirect");
}

Result<> read_policy(const json::value& value, std::string_view field, EvictionPolicy& out) {
  std::string name;
  TRY_VOID(read_field(value, field, name));
  const auto found = std::ranges::find(kEvictionPolicyNames, name);
  if (found == std::end(kEvictionPolicyNames))
    return field_failure(field, ErrorCode::unsupported, "must be one of {}, got {}", fmt::join(kEvictionPolicyNames, ", "),
                         quoted_text(name));
  out = static_cast<EvictionPolicy>(found - std::begin(kEvictionPolicyNames));
  return {};
}

// Reads the fields of vLLM's CPUOffloadingSpec (host memory) and TieringOffloadingSpec (host memory and a
// tier below it). Without spec_name, the given fields determine the spec.
Result<> read_offloading(const json::object& extra, KvTransferOptions& out) {
  constexpr std::string_view kHost = "CPUOffloadingSpec", kTiers = "TieringOffloadingSpec";
  KvTierOptions& tier = out.tier.emplace();
  std::string spec;
  const auto take = [&](std::string_view key, const std::string& field, const json::value& item) -> Result<> {
    int tokens = 0;
    bool flag = false;
    if (key == "secondary_tiers") return read_tier(item, tier);
    if (key == "store_threshold") return read_field(item, field, 0, 1 << 30, tier.store_threshold);
    if (key == "max_tracker_size") return read_field(item, field, 1, 1 << 26, tier.max_tracker_size);
    if (key == "cpu_bytes_to_use") return read_bytes(item, field, tier.host_bytes);
    if (key == "eviction_policy") return read_policy(item, field, tier.eviction);
    if (key == "load_always") return read_field(item, field, tier.load_always);
    // These fields have no effect: prefixes match block by block, and events always contain all fields.
    if (key == "block_size" || key == "blocks_per_chunk") return read_field(item, field, 1, 1 << 30, tokens);
    if (key == "self_describing_kv_events") return read_field(item, field, flag);
    if (key == "offload_prompt_only") return read_field(item, field, tier.prompt_only);
    if (key == "spec_name") {
      TRY_VOID(read_field(item, field, spec));
      if (spec == kHost || spec == kTiers) return {};
      return field_failure(field, ErrorCode::unsupported, "must be \"{}\" or \"{}\", got {}", kHost, kTiers,
                           quoted_text(spec));
    }
    return no_field(key);
  };
  TRY_VOID(for_extra(extra, take));
  if (spec == kHost && !tier.path_or_url.empty())
    return invalid("kv_connector_extra_config.secondary_tiers", "is a field of {}, but spec_name is {}",
                   kTiers, kHost);
  if (spec == kTiers && tier.path_or_url.empty())
    return invalid("kv_connector_extra_config.secondary_tiers", "must be given with {}", kTiers);
  if (tier.host_bytes == 0 && tier.path_or_url.empty())
    return invalid("kv_connector_extra_config.cpu_bytes_to_use",
                   "must be given: the number of bytes of host memory for KV blocks");
  if (tier.eviction != EvictionPolicy::lru && tier.host_bytes == 0 && is_store_url(tier.path_or_url))
    return field_failure(
        "kv_connector_extra_config.eviction_policy", ErrorCode::unsupported,
        "needs host memory or a folder, because the server of a store decides what it evicts");
  return {};
}

Result<> read_gib(const json::value& value, std::string_view field, std::int64_t& out) {
  constexpr int kMost = 1 << 20;
  boost::system::error_code not_number;
  const auto gib = value.to_number<double>(not_number);
  if (not_number || !(gib > 0 && gib <= kMost))
    return invalid(field, "must be a number of GiB above 0 and at most {}", kMost);
  out = static_cast<std::int64_t>(gib * (std::int64_t{1} << 30));
  return {};
}

Result<> read_lmcache(const json::object& extra, KvTransferOptions& out) {
  constexpr std::string_view kPrefix = "lmcache.", kFile = "file://";
  constexpr std::string_view kODirect = "kv_connector_extra_config.lmcache.extra_config.use_odirect";
  KvTierOptions& tier = out.tier.emplace();
  bool on_host = true;
  std::string disk, store;
  const auto take = [&](std::string_view key, const std::string& field, const json::value& item) -> Result<> {
    if (item.is_null()) return {};
    if (!key.starts_with(kPrefix)) return no_field(key);
    const std::string_view name = key.substr(kPrefix.size());
    if (name == "local_cpu") return read_field(item, field, on_host);
    if (name == "max_local_cpu_size") return read_gib(item, field, tier.host_bytes);
    if (name == "max_local_disk_size") return read_gib(item, field, tier.bytes);
    if (name == "local_disk") {
      TRY_VOID(read_field(item, field, disk));
      if (disk.starts_with(kFile)) disk.erase(0, kFile.size());
      return disk.empty() || is_store_url(disk) ? invalid(field, "must be the path of a folder") : Result<>();
    }
    if (name == "remote_url") {
      TRY_VOID(read_path_or_url(item, field, store));
      if (is_store_url(store)) return {};
      return field_failure(field, ErrorCode::unsupported,
                           "must begin with redis://, valkey://, http:// or https://, got {}",
                           quoted_text(store));
    }
    if (name == "extra_config") {
      if (!item.is_object()) return invalid(field, "must be a JSON object");
      for (const auto& [inner, each] : item.get_object()) {
        if (inner != "use_odirect") return no_field(fmt::format("{}.{}", key, std::string_view(inner)));
        TRY_VOID(read_field(each, kODirect, tier.use_odirect));
      }
      return {};
    }
    if (name == "cache_policy") {
      std::string policy;
      TRY_VOID(read_field(item, field, policy));
      if (policy == "LRU") return {};
      return field_failure(field, ErrorCode::unsupported, "must be \"LRU\", got {}", quoted_text(policy));
    }
    int tokens = 0;
    // This field has no effect: blocks are transferred one by one.
    if (name == "chunk_size") return read_field(item, field, 1, 1 << 30, tokens);
    return no_field(key);
  };
  TRY_VOID(for_extra(extra, take));
  if (!on_host) tier.host_bytes = 0;
  if (!disk.empty() && !store.empty())
    return field_failure("kv_connector_extra_config.lmcache.remote_url", ErrorCode::unsupported,
                         "cannot be combined with lmcache.local_disk");
  tier.path_or_url = disk.empty() ? store : disk;
  if (tier.host_bytes == 0 && tier.path_or_url.empty())
    return invalid("kv_connector_extra_config.lmcache.max_local_cpu_size",
                   "must be given, or lmcache.local_disk or lmcache.remote_url: in this object, in LMCACHE_* "
                   "or in the file of LMCACHE_CONFIG_FILE");
  return check_odirect(tier, kODirect);
}

Result<> read_connector(const json::object& config, KvTransferOptions& out);

Result<> read_multi(const json::object& extra, KvTransferOptions& out) {
  constexpr std::string_view kField = "kv_connector_extra_config.connectors";
  const json::value* connectors = extra.if_contains("connectors");
  if (extra.size() != 1 || connectors == nullptr || !connectors->is_array() ||
      connectors->get_array().empty())
    return invalid(kField, "must be a list of JSON objects, and no other field is allowed");
  for (const json::value& each : connectors->get_array()) {
    if (!each.is_object()) return invalid(kField, "must be a list of JSON objects");
    const json::value* name = each.get_object().if_contains("kv_connector");
    if (name != nullptr && *name == "MultiConnector")
      return invalid(kField, "must not contain a MultiConnector");
    KvTransferOptions one;
    TRY_VOID(read_connector(each.get_object(), one));
    out.others.insert(out.others.end(), one.others.begin(), one.others.end());
    if (!one.others.empty()) continue;
    const bool peers = one.produces || one.consumes;
    if (peers && !(out.produces || out.consumes)) {
      one.tier = std::move(out.tier);
      one.others = std::move(out.others);
      if (one.engine_id.empty()) one.engine_id = std::move(out.engine_id);
      out = std::move(one);
    } else if (one.tier && !out.tier) {
      out.tier = std::move(one.tier);
    } else {
      return field_failure(kField, ErrorCode::unsupported,
                           "two connectors have the same type: give at most one of each");
    }
  }
  return {};
}

// The library itself parses kv_connector_extra_config.
Result<> read_library(const std::string& path, const json::object& extra, KvTransferOptions& out) {
  KvTierOptions& tier = out.tier.emplace();
  tier.path_or_url = library_url(path, json::serialize(extra));
  if (const auto store = store_at(tier.path_or_url, {}); !store)
    return invalid("kv_connector_module_path", "{}", store.error().message);
  if (!out.produces || !out.consumes)
    return field_failure("kv_role", ErrorCode::unsupported, "must be kv_both with kv_connector_module_path");
  out.produces = out.consumes = false;
  return {};
}

struct ConnectorRow {
  std::string_view name;
  Result<> (*read)(const json::object& extra, KvTransferOptions& out);
  bool peers;  // true: kv_role may be kv_producer, kv_consumer or kv_both; false: only kv_both
};
constexpr std::array kConnectors{ConnectorRow{"NixlConnector", read_nixl, true},
                                 ConnectorRow{"NixlPullConnector", read_nixl, true},
                                 ConnectorRow{"OctavoConnector", read_nixl, true},
                                 ConnectorRow{"OffloadingConnector", read_offloading, false},
                                 ConnectorRow{"LMCacheConnectorV1", read_lmcache, false},
                                 ConnectorRow{"SharedStorageConnector", read_shared_storage, false},
                                 ConnectorRow{"ExampleConnector", read_shared_storage, false},
                                 ConnectorRow{"MultiConnector", read_multi, false}};

Result<> read_connector(const json::object& config, KvTransferOptions& out) {
  std::string connector, module, policy = "recompute";
  json::object extra;
  for (const auto& [key, item] : config) {
    const std::string_view name = key;
    if (item.is_null()) continue;
    if (name == "kv_connector") {
      TRY_VOID(read_field(item, name, connector));
    } else if (name == "kv_role") {
      TRY_VOID(read_role(item, out));
    } else if (name == "kv_connector_module_path") {
      TRY_VOID(read_field(item, name, module));
    } else if (name == "engine_id") {
      TRY_VOID(read_field(item, name, out.engine_id));
      if (out.engine_id.size() > 256) return invalid(name, "must have at most 256 bytes");
    } else if (name == kExtra) {
      if (!item.is_object()) return invalid(kExtra, "must be a JSON object");
      extra = item.get_object();
    } else if (name == "kv_load_failure_policy") {
      TRY_VOID(read_field(item, name, policy));
      if (policy != "recompute") return invalid(name, "must be \"recompute\", got {}", quoted_text(policy));
    } else if (name != "kv_buffer_device" && name != "kv_buffer_size" && name != "kv_rank" &&
               // These fields of vLLM's other connectors have no effect here.
               name != "kv_parallel_size" && name != "kv_ip" && name != "kv_port") {
      return invalid("kv_transfer_config", "the field {} does not exist", quoted_text(name));
    }
  }
  if (!module.empty()) return read_library(module, extra, out);
  std::string names;
  for (const ConnectorRow& each : kConnectors) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", each.name);
    if (each.name != connector) continue;
    if (!out.produces && !out.consumes)
      return invalid("kv_role", "must be given: kv_producer, kv_consumer or kv_both");
    if (!each.peers && !(out.produces && out.consumes))
      return field_failure("kv_role", ErrorCode::unsupported,
                           "must be kv_both with {}; for prefill and decode engines use NixlConnector",
                           connector);
    if (!each.peers) out.produces = out.consumes = false;
    return each.read(extra, out);
  }
  if (connector.empty()) return invalid("kv_connector", "must be given: one of {}", names);
  return field_failure("kv_connector", ErrorCode::unsupported, "{} is not supported: must be one of {}",
                       quoted_text(connector), names);
}

}  // namespace

Result<KvTransferOptions> parse_kv_transfer_config(std::string_view text) {
  boost::system::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("kv_transfer_config", "must be a JSON object");
  KvTransferOptions options;
  TRY_VOID(read_connector(value.get_object(), options));
  options.enabled = true;
  return options;
}

}  // namespace octavo
