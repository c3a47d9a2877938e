#include "fleet/discover/worker_record.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value_from.hpp>
#include <map>
#include <string>

#include "fleet/discover/event_addresses.h"
#include "http/async_client.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr int kRanksMax = 1024;
constexpr int kBlockTokensMax = 1 << 20;

// Returns null if the field is missing or is JSON's null.
const json::value* field_of(const json::object& record, std::string_view name) {
  const json::value* field = record.if_contains(name);
  return field != nullptr && field->is_null() ? nullptr : field;
}

Result<Role> read_role(const json::value* role) {
  if (role == nullptr) return Role::both;
  if (role->is_string() && role->get_string() == "prefill") return Role::prefill;
  if (role->is_string() && role->get_string() == "decode") return Role::decode;
  return invalid("role", "must be \"prefill\" or \"decode\"");
}

Result<std::vector<std::string>> read_models(const json::value* models) {
  std::vector<std::string> names;
  if (models == nullptr) return names;
  if (!models->is_array()) return invalid("models", "must be a list of names");
  for (const json::value& model : models->get_array()) {
    if (!model.is_string()) return invalid("models", "must be a list of names");
    names.emplace_back(model.get_string());
  }
  return names;
}

Result<int> read_count(const json::object& record, std::string_view name, int max) {
  const json::value* field = field_of(record, name);
  if (field == nullptr) return 0;
  if (!field->is_int64() || field->get_int64() < 1 || field->get_int64() > max)
    return invalid(std::string(name), "must be an integer from 1 to {}", max);
  return static_cast<int>(field->get_int64());
}

Result<std::map<std::string, std::string>> read_labels(const json::value* labels) {
  std::map<std::string, std::string> read;
  if (labels == nullptr) return read;
  if (!labels->is_object()) return invalid("labels", "must be an object whose values are strings");
  for (const auto& [name, value] : labels->get_object()) {
    if (!value.is_string()) return invalid("labels", "must be an object whose values are strings");
    read[name] = value.get_string();
  }
  return read;
}

void replace_host(std::string& address, std::string_view host) {
  constexpr std::string_view kAnyHost = "//*:";
  if (const std::size_t at = address.find(kAnyHost); at != std::string::npos)
    address.replace(at + 2, 1, host);
}

}  // namespace

Result<Endpoint> read_worker(const json::object& record) {
  const json::value* url = field_of(record, "url");
  if (url == nullptr || !url->is_string()) return invalid("url", "must be a URL like \"http://host:port\"");
  TRY(const http::Address address, http::parse_base_url(url->get_string()));
  Endpoint worker{.name = address.text(), .url = address.url()};
  TRY(worker.role, read_role(field_of(record, "role")));
  TRY(worker.models, read_models(field_of(record, "models")));
  TRY(worker.labels, read_labels(field_of(record, "labels")));
  if (const json::value* events = field_of(record, "kv_events")) {
    if (!events->is_string()) return invalid("kv_events", "must be an address like \"tcp://host:5557\"");
    if (events->get_string() != "none")
      TRY_VOID(read_event_addresses(events->get_string(), "kv_events", worker));
  }
  TRY(worker.block_size, read_count(record, "block_size", kBlockTokensMax));
  TRY(worker.ranks, read_count(record, "ranks", kRanksMax));
  TRY(worker.bootstrap_port, read_count(record, "bootstrap_port", 65'535));
  return worker;
}

Result<Endpoint> read_worker(std::string_view text) {
  if (!text.starts_with('{')) return read_worker(json::object{{"url", text}});
  boost::system::error_code error;
  const json::value parsed = json::parse(text, error);
  if (error || !parsed.is_object()) return invalid("", "must be a URL or a JSON object");
  return read_worker(parsed.get_object());
}

json::object write_worker(const Endpoint& worker) {
  json::object record{{"url", worker.url}};
  if (worker.role != Role::both) record["role"] = worker.role == Role::prefill ? "prefill" : "decode";
  if (!worker.models.empty()) record["models"] = json::value_from(worker.models);
  if (!worker.labels.empty()) record["labels"] = json::value_from(worker.labels);
  if (!worker.kv_events_endpoint.empty())
    record["kv_events"] = worker.kv_replay_endpoint.empty()
                              ? worker.kv_events_endpoint
                              : worker.kv_events_endpoint + "," + worker.kv_replay_endpoint;
  if (worker.block_size > 0) record["block_size"] = worker.block_size;
  if (worker.ranks > 0) record["ranks"] = worker.ranks;
  if (worker.bootstrap_port > 0) record["bootstrap_port"] = worker.bootstrap_port;
  return record;
}

Endpoint at_host(Endpoint worker, std::string_view host) {
  for (std::string* address : {&worker.url, &worker.kv_events_endpoint, &worker.kv_replay_endpoint})
    replace_host(*address, host);
  worker.name = worker.url.substr(worker.url.find("//") + 2);
  return worker;
}

}  // namespace octavo::fleet
