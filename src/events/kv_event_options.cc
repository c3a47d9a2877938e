#include "events/kv_event_options.h"

#include <boost/json/parse.hpp>
#include <charconv>

#include "base/quoted_text.h"

namespace octavo {
namespace {

namespace json = boost::json;

Result<> read(const json::value& value, std::string_view field, std::string& out) {
  if (value.is_null()) return {};
  if (!value.is_string()) return invalid(field, "must be a string");
  out = value.get_string();
  return {};
}

Result<> read(const json::value& value, std::string_view field, int& out) {
  json::error_code not_integer;
  const int number = value.to_number<int>(not_integer);
  if (not_integer || number < 0 || number > 10'000'000)
    return invalid(field, "must be an integer in [0, 10000000]");
  out = number;
  return {};
}

}  // namespace

Result<KvEventOptions> parse_kv_events_config(std::string_view text) {
  json::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("kv_events_config", "must be a JSON object");
  KvEventOptions options;
  std::string publisher = "zmq";
  int max_queue_size = 0;  // accepted: see KvEventOptions
  for (const auto& [key, item] : value.get_object()) {
    const std::string_view name = key;
    if (name == "enable_kv_cache_events") {
      if (!item.is_bool()) return invalid(name, "must be true or false");
      options.enabled = item.get_bool();
    } else if (name == "publisher") {
      TRY_VOID(read(item, name, publisher));
      if (publisher != "zmq" && publisher != "null")
        return invalid(name, "must be \"zmq\" or \"null\", got {}", quoted_text(publisher));
    } else if (name == "endpoint") {
      TRY_VOID(read(item, name, options.endpoint));
    } else if (name == "replay_endpoint") {
      TRY_VOID(read(item, name, options.replay_endpoint));
    } else if (name == "buffer_steps") {
      TRY_VOID(read(item, name, options.buffer_steps));
    } else if (name == "hwm") {
      TRY_VOID(read(item, name, options.hwm));
    } else if (name == "max_queue_size") {
      TRY_VOID(read(item, name, max_queue_size));
    } else if (name == "topic") {
      TRY_VOID(read(item, name, options.topic));
    } else {
      return invalid("kv_events_config", "there is no field {}", quoted_text(name));
    }
  }
  if (publisher == "null") options.enabled = false;
  return options;
}

std::string endpoint_of(const std::string& endpoint, int engine) {
  if (engine == 0 || endpoint.empty()) return endpoint;
  const std::size_t colon = endpoint.rfind(':');
  if (endpoint.starts_with("tcp://") && colon != std::string::npos) {
    int port = 0;
    const char* end = endpoint.data() + endpoint.size();
    if (std::from_chars(endpoint.data() + colon + 1, end, port).ptr == end)
      return fmt::format("{}:{}", endpoint.substr(0, colon), port + engine);
  }
  return fmt::format("{}_dp{}", endpoint, engine);
}

}  // namespace octavo
