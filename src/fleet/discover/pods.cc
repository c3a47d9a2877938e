#include "fleet/discover/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>

#include "base/quoted_text.h"
#include "fleet/discover/endpoints.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// Returns whether the text consists only of characters that labels may contain.
bool is_label(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  });
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

const json::object& part(const json::object& object, std::string_view name) {
  static const json::object kNone;
  const json::value* value = object.if_contains(name);
  return value && value->is_object() ? value->get_object() : kNone;
}

bool is_ready(const json::object& status) {
  const json::value* conditions = status.if_contains("conditions");
  return conditions && conditions->is_array() &&
         std::ranges::any_of(conditions->get_array(), [](const json::value& condition) {
           return condition.is_object() && text_of(condition.get_object(), "type") == "Ready" &&
                  text_of(condition.get_object(), "status") == "True";
         });
}

}  // namespace

Result<LabelSelector> parse_label_selector(std::string_view text, std::string_view field) {
  LabelSelector selector;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos || !is_label(item.substr(0, equals)) ||
        !is_label(item.substr(equals + 1)))
      return invalid(field, "must be labels like app=vllm,tier=gpu, got {}", quoted_text(item));
    selector[std::string(item.substr(0, equals))] = item.substr(equals + 1);
  }
  return selector;
}

bool selects(const LabelSelector& selector, const std::map<std::string, std::string>& labels) {
  return std::ranges::all_of(selector, [&](const auto& wanted) {
    const auto label = labels.find(wanted.first);
    return label != labels.end() && label->second == wanted.second;
  });
}

std::string selector_query(const LabelSelector& selector) {
  std::string query;
  for (const auto& [key, value] : selector) {
    query += (query.empty() ? "labelSelector=" : "%2C");
    for (const char c : key)
      if (c == '/')
        query += "%2F";
      else
        query += c;
    query += "%3D" + value;
  }
  return query;
}

std::optional<Pod> ready_pod(const json::object& object) {
  const json::object& metadata = part(object, "metadata");
  const json::object& status = part(object, "status");
  Pod pod{.name = text_of(metadata, "name"), .ip = text_of(status, "podIP"), .node = text_of(status, "hostIP")};
  const bool runs = text_of(status, "phase") == "Running" && is_ready(status);
  if (!runs || pod.ip.empty() || metadata.contains("deletionTimestamp")) return std::nullopt;
  for (const auto& [key, value] : part(metadata, "labels"))
    if (value.is_string()) pod.labels[key] = value.get_string();
  const std::string port = text_of(part(metadata, "annotations"), "sglang.ai/bootstrap-port");
  std::from_chars(port.data(), port.data() + port.size(), pod.bootstrap_port);
  return pod;
}

std::vector<Endpoint> endpoints_of(const Pod& pod, const std::vector<int>& ports) {
  std::vector<Endpoint> endpoints;
  const bool v6 = pod.ip.find(':') != std::string::npos;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    auto endpoint = endpoint_of_address(v6 ? fmt::format("[{}]:{}", pod.ip, ports[i])
                                           : fmt::format("{}:{}", pod.ip, ports[i]));
    if (!endpoint) continue;
    endpoint->labels = pod.labels;
    endpoint->role = role_of_labels(pod.labels);
    endpoint->bootstrap_port = pod.bootstrap_port;
    endpoint->pod = pod.name;
    endpoint->node = pod.node;
    endpoint->rank = static_cast<int>(i);
    endpoints.push_back(*std::move(endpoint));
  }
  return endpoints;
}

}  // namespace octavo::fleet
