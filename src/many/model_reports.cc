#include "many/model_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <iterator>
#include <vector>

#include "request/prometheus_text.h"
#include "serve/ollama/reply.h"

namespace octavo::many {
namespace {

namespace json = boost::json;

json::object entry(const ModelTable& table, std::size_t model, const ModelStatus& status,
                   const std::string& name, std::int64_t started_at) {
  const auto& names = table.source(model).names;
  const bool adapter = std::ranges::find(names, name) - names.begin() >=
                       static_cast<std::ptrdiff_t>(table.source(model).served);
  const auto service = table.service(model);
  const ModelRules& rules = status.model.rules;
  json::object out{{"id", name},
                   {"object", "model"},
                   {"created", started_at},
                   {"owned_by", "octavo"},
                   {"root", names.front()},
                   {"parent", adapter ? json::value(names.front()) : json::value(nullptr)},
                   {"max_model_len", service ? json::value(service->options.rules.max_model_len) : nullptr},
                   {"permission", json::array()},
                   {"state", status.state},
                   {"size", rules.weight_bytes},
                   {"kv_cache_size", rules.cache_bytes},
                   {"kv_cache_kept", status.model.has_cache},
                   {"pinned", rules.pinned},
                   {"unfinished", status.unfinished},
                   {"last_use", status.last_use == 0 ? json::value(nullptr) : json::value(status.last_use)}};
  if (!status.error.empty()) out["error"] = status.error;
  return out;
}

struct ModelMetric {
  std::string_view name, type, help;
  double (*value)(const ModelStatus&);
};

constexpr ModelMetric kModelMetrics[] = {
    {"model_loaded", "gauge", "1: the model is loaded.",
     [](const ModelStatus& s) -> double { return s.model.presence == Presence::loaded ? 1 : 0; }},
    {"model_waiting", "gauge", "1: requests wait until the model is loaded.",
     [](const ModelStatus& s) -> double { return s.model.wanted_us != 0 ? 1 : 0; }},
    {"model_weight_bytes", "gauge", "Bytes of weights while the model is loaded.",
     [](const ModelStatus& s) { return static_cast<double>(s.model.rules.weight_bytes); }},
    {"model_kept_cache_bytes", "gauge", "Bytes of the KV cache, if it exists.",
     [](const ModelStatus& s) {
       return s.model.has_cache ? static_cast<double>(s.model.rules.cache_bytes) : 0;
     }},
    {"model_last_use_seconds", "gauge", "Time of the last request, in seconds since 1970.",
     [](const ModelStatus& s) { return static_cast<double>(s.last_use); }},
    {"model_loads_total", "counter", "Loads of the model.",
     [](const ModelStatus& s) { return static_cast<double>(s.loads); }},
    {"model_unloads_total", "counter", "Unloads of the model.",
     [](const ModelStatus& s) { return static_cast<double>(s.unloads); }},
    {"model_load_seconds_total", "counter", "Time of all loads.",
     [](const ModelStatus& s) { return s.load_seconds; }}};

void append_gauge(std::string& out, std::string_view name, std::string_view help, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), "# HELP octavo:{0} {1}\n# TYPE octavo:{0} gauge\noctavo:{0} {2}\n",
                 name, help, value);
}

}  // namespace

json::object model_json(const ModelTable& table, std::size_t model, const std::string& name,
                        std::int64_t started_at) {
  return entry(table, model, table.status()[model], name, started_at);
}

json::object models_json(const ModelTable& table, std::int64_t started_at) {
  json::array data;
  const std::vector<ModelStatus> all = table.status();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::string& name : table.source(i).names)
      data.push_back(entry(table, i, all[i], name, started_at));
    const auto service = table.service(i);
    if (!service) continue;
    for (const AdapterCard& card : service->adapters->all())
      if (std::ranges::find(table.source(i).names, card.name) == table.source(i).names.end()) {
        json::object adapter = entry(table, i, all[i], card.name, started_at);
        adapter["parent"] = card.parent;
        data.push_back(std::move(adapter));
      }
  }
  return {{"object", "list"}, {"data", std::move(data)}};
}

json::object ollama_models_json(const ModelTable& table, std::int64_t started_at, bool only_loaded) {
  json::array models;
  const std::vector<ModelStatus> all = table.status();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (only_loaded && all[i].model.presence != Presence::loaded) continue;
    const auto service = table.service(i);
    const std::string family = service ? service->engine_info.architecture : "";
    for (const std::string& name : table.source(i).names) {
      json::object card{{"name", name},
                        {"model", name},
                        {"modified_at", ollama::time_of(started_at)},
                        {"size", all[i].model.rules.weight_bytes},
                        {"digest", ""},
                        {"details",
                         {{"parent_model", ""},
                          {"format", ""},
                          {"family", family},
                          {"families", {family}},
                          {"parameter_size", ""},
                          {"quantization_level", ""}}}};
      if (only_loaded) {
        const auto& keep_us = all[i].model.keep_us;
        card["expires_at"] = keep_us && *keep_us >= 0
                                 ? ollama::time_of(all[i].last_use + *keep_us / 1'000'000)
                                 : "9999-12-31T23:59:59Z";  // no fixed time
        card["size_vram"] = 0;
        if (service) card["context_length"] = service->options.rules.max_model_len;
      }
      models.push_back(std::move(card));
    }
  }
  return {{"models", std::move(models)}};
}

std::string table_metrics(std::span<const std::string> names, std::span<const ModelStatus> status,
                          std::int64_t memory_bytes, std::int64_t used_bytes) {
  std::string out;
  for (const ModelMetric& metric : kModelMetrics) {
    fmt::format_to(std::back_inserter(out), "# HELP octavo:{0} {1}\n# TYPE octavo:{0} {2}\n", metric.name,
                   metric.help, metric.type);
    for (std::size_t i = 0; i < status.size(); ++i)
      fmt::format_to(std::back_inserter(out), "octavo:{}{{model_name=\"{}\"}} {}\n", metric.name,
                     escaped_label(names[i]), metric.value(status[i]));
  }
  append_gauge(out, "models_memory_bytes", "Memory for all models (--models-memory).", memory_bytes);
  append_gauge(out, "models_used_bytes", "Memory that weights and KV caches of models use.", used_bytes);
  return out;
}

}  // namespace octavo::many
