#include "events/kv_event_options.h"

#include <boost/json/parse.hpp>

#include "base/json_field.h"
#include "base/quoted_text.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::string_view kTcp = "tcp://";

// Reads a string. JSON null counts as a missing field.
Result<> read_text(const json::value& value, std::string_view field, std::string& out) {
  return value.is_null() ? Result<>() : read_field(value, field, out);
}

Result<> read_count(const json::value& value, std::string_view field, int& out) {
  return read_field(value, field, 0, 10'000'000, out);
}

}  // namespace

Result<KvEventOptions> parse_kv_events_config(std::string_view text) {
  boost::system::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("kv_events_config", "must be a JSON object");
  KvEventOptions options;
  std::string publisher = "zmq";
  int max_queue_size = 0;  // ignored, see KvEventOptions
  for (const auto& [key, item] : value.get_object()) {
    const std::string_view name = key;
    if (name == "enable_kv_cache_events") {
      TRY_VOID(read_field(item, name, options.enabled));
    } else if (name == "publisher") {
      TRY_VOID(read_text(item, name, publisher));
      if (publisher != "zmq" && publisher != "null")
        return invalid(name, "must be \"zmq\" or \"null\", got {}", quoted_text(publisher));
    } else if (name == "endpoint") {
      TRY_VOID(read_text(item, name, options.endpoint));
    } else if (name == "replay_endpoint") {
      TRY_VOID(read_text(item, name, options.replay_endpoint));
    } else if (name == "buffer_steps") {
      TRY_VOID(read_count(item, name, options.buffer_steps));
    } else if (name == "hwm") {
      TRY_VOID(read_count(item, name, options.hwm));
    } else if (name == "max_queue_size") {
      TRY_VOID(read_count(item, name, max_queue_size));
    } else if (name == "topic") {
      TRY_VOID(read_text(item, name, options.topic));
    } else {
      return invalid("kv_events_config", "unknown field {}", quoted_text(name));
    }
  }
  if (publisher == "null") options.enabled = false;
  return options;
}

bool binds(std::string_view endpoint) {
  if (!endpoint.starts_with(kTcp) || endpoint.find('*') != endpoint.npos || endpoint.find("::") != endpoint.npos)
    return true;
  const std::string_view host = endpoint.substr(kTcp.size(), endpoint.rfind(':') - kTcp.size());
  return endpoint.rfind(':') < kTcp.size() || host.empty() || host == "0.0.0.0";
}

std::string bind_address(const std::string& endpoint) {
  constexpr std::string_view kNoHost = "tcp://:";
  return endpoint.starts_with(kNoHost) ? "tcp://*:" + endpoint.substr(kNoHost.size()) : endpoint;
}

}  // namespace octavo
