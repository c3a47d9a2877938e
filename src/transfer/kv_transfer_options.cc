#include "transfer/kv_transfer_options.h"

#include <boost/json/parse.hpp>

namespace octavo {
namespace {

namespace json = boost::json;

Result<> read(const json::value& value, std::string_view field, std::string& out) {
  if (!value.is_string()) return invalid(field, "must be a string");
  out = value.get_string();
  return {};
}

Result<> read(const json::value& value, std::string_view field, int max, int& out) {
  json::error_code not_integer;
  const int number = value.to_number<int>(not_integer);
  if (not_integer || number < 0 || number > max) return invalid(field, "must be an integer in [0, {}]", max);
  out = number;
  return {};
}

Result<> read_role(const json::value& value, KvTransferOptions& out) {
  std::string role;
  TRY_VOID(read(value, "kv_role", role));
  if (role != "kv_producer" && role != "kv_consumer" && role != "kv_both")
    return invalid("kv_role", "must be kv_producer, kv_consumer or kv_both, got {:?}", role);
  out.produces = role != "kv_consumer";
  out.consumes = role != "kv_producer";
  return {};
}

Result<> read_extra(const json::value& value, KvTransferOptions& out) {
  if (!value.is_object()) return invalid("kv_connector_extra_config", "must be a JSON object");
  for (const auto& [key, item] : value.get_object()) {
    const std::string field = "kv_connector_extra_config." + std::string(key);
    if (key == "side_channel_host") {
      TRY_VOID(read(item, field, out.host));
    } else if (key == "side_channel_port") {
      TRY_VOID(read(item, field, 65'535, out.port.emplace()));
    } else if (key == "kv_lease_duration") {
      TRY_VOID(read(item, field, 86'400, out.lease_seconds));
      if (out.lease_seconds < 1) return invalid(field, "must be at least 1 second");
    } else if (key == "kv_recompute_threshold") {
      TRY_VOID(read(item, field, 1 << 30, out.recompute_threshold));
    } else if (key == "transport") {
      std::string transport;
      TRY_VOID(read(item, field, transport));
      if (transport != "auto" && transport != "tcp")
        return invalid(field, "must be \"auto\" or \"tcp\", got {:?}", transport);
      out.shared_memory = transport == "auto";
    } else if (key != "backends" && key != "num_threads") {  // of NIXL itself
      return invalid("kv_connector_extra_config", "there is no field {:?}", std::string_view(key));
    }
  }
  return {};
}

}  // namespace

Result<KvTransferOptions> parse_kv_transfer_config(std::string_view text) {
  json::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("kv_transfer_config", "must be a JSON object");
  KvTransferOptions options{.enabled = true};
  std::string connector, policy = "recompute";
  for (const auto& [key, item] : value.get_object()) {
    const std::string_view name = key;
    if (item.is_null()) continue;
    if (name == "kv_connector") {
      TRY_VOID(read(item, name, connector));
    } else if (name == "kv_role") {
      TRY_VOID(read_role(item, options));
    } else if (name == "engine_id") {
      TRY_VOID(read(item, name, options.engine_id));
      if (options.engine_id.size() > 256) return invalid(name, "must have at most 256 bytes");
    } else if (name == "kv_connector_extra_config") {
      TRY_VOID(read_extra(item, options));
    } else if (name == "kv_load_failure_policy") {
      TRY_VOID(read(item, name, policy));
      if (policy != "recompute") return invalid(name, "only \"recompute\" is supported, got {:?}", policy);
    } else if (name != "kv_buffer_device" && name != "kv_buffer_size" && name != "kv_rank" &&
               name != "kv_parallel_size" && name != "kv_ip" && name != "kv_port") {  // of other connectors
      return invalid("kv_transfer_config", "there is no field {:?}", name);
    }
  }
  if (connector.empty()) return invalid("kv_connector", "must be given: \"NixlConnector\"");
  if (connector != "NixlConnector" && connector != "OctavoConnector")
    return field_failure("kv_connector", ErrorCode::unsupported,
                         "{:?} is not supported, only \"NixlConnector\" (or \"OctavoConnector\", the same)",
                         connector);
  if (!options.produces && !options.consumes)
    return invalid("kv_role", "must be given: kv_producer, kv_consumer or kv_both");
  return options;
}

}  // namespace octavo
