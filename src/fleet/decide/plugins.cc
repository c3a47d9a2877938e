#include "fleet/decide/plugins.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/edit_distance.h"
#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {

std::unexpected<Error> unknown_plugin(std::string_view field, std::string_view type,
                                      std::vector<std::string_view> others) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string_view> known = std::move(others);
  for (const PluginRow& row : plugin_table()) known.push_back(row.type);
  return invalid(field, "the plugin type {} does not exist; similar types: {}", quoted_text(type),
                 fmt::join(nearest_names(type, std::move(known), kShown), ", "));
}

Result<std::unique_ptr<Plugins>> Plugins::make(std::span<const PluginConfig> configs) {
  std::unique_ptr<Plugins> plugins(new Plugins());
  // Makes producers and extractors first, because other plugins look them up.
  for (const bool first : {true, false}) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::string& type = configs[i].type;
      const bool is_looked_for = type.ends_with("-producer") || type.ends_with("-extractor") ||
                                 type == "precise-prefix-cache-scorer";
      if (is_looked_for != first) continue;
      TRY_VOID(plugins->add(configs[i], fmt::format("plugins[{}]", i)));
    }
  }
  return plugins;
}

Result<> Plugins::add(const PluginConfig& config, std::string where) {
  const std::string& name = config.name.empty() ? config.type : config.name;
  const PluginRow* row = find_plugin(config.type);
  if (!row) return unknown_plugin(where + ".type", config.type);
  if (find(name))
    return invalid(where + ".name", "{} is used by two plugins: names must be unique", quoted_text(name));
  Parameters parameters(config.parameters, where + ".parameters");
  std::unique_ptr<Plugin> plugin = row->make(parameters, *this);
  TRY_VOID(parameters.done());
  if (auto* admitter = dynamic_cast<Admitter*>(plugin.get())) admitters_.push_back(admitter);
  if (auto* producer = dynamic_cast<Producer*>(plugin.get())) {
    producers_.push_back(producer);
    producer_steps_.push_back({config.type, name});
    overlaps_.emplace_back();
  }
  names_.push_back(name);
  steps_.push_back({config.type, name});
  plugins_.push_back(std::move(plugin));
  return {};
}

Plugin* Plugins::find(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  return found != names_.end() ? plugins_[static_cast<std::size_t>(found - names_.begin())].get() : nullptr;
}

const StepName* Plugins::step(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  return found != names_.end() ? &steps_[static_cast<std::size_t>(found - names_.begin())] : nullptr;
}

std::vector<IndexedPrefixes> Plugins::indexed_prefixes() const {
  std::vector<IndexedPrefixes> found;
  for (std::size_t i = 0; i < producers_.size(); ++i)
    if (const auto size = producers_[i]->index_size()) found.push_back({producer_steps_[i], *size});
  return found;
}

Plugin* Plugins::find_or_add(std::string_view name, Parameters& parameters, std::string_view field) {
  if (Plugin* known = find(name)) return known;
  const auto added = add({.name = "", .type = std::string(name)}, std::string(field));
  if (!added) parameters.fail(field, added.error().message);
  return find(name);
}

std::size_t Plugins::producer(std::string_view name, Parameters& parameters, std::string_view field) {
  if (!find_or_add(name, parameters, field)) return 0;
  const auto found = std::ranges::find(producer_steps_, name, &StepName::name);
  if (found != producer_steps_.end()) return static_cast<std::size_t>(found - producer_steps_.begin());
  parameters.fail(field, "must name a producer plugin");
  return 0;
}

std::string Plugins::reads_header(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (std::ranges::find(headers_, lower) == headers_.end()) headers_.push_back(lower);
  return lower;
}

std::optional<std::string> Plugins::refusal(Cycle& cycle, int priority, const Candidates& candidates) {
  if (!admitters_.empty()) produce(cycle);
  for (Admitter* admitter : admitters_)
    if (auto why = admitter->refusal(cycle, priority, candidates)) return why;
  return std::nullopt;
}

void Plugins::produce(Cycle& cycle) {
  for (std::size_t i = 0; i < producers_.size(); ++i)
    timed(cycle.timer, "DataProducer", producer_steps_[i],
          [&] { producers_[i]->produce(cycle, overlaps_[i]); });
  cycle.overlaps = overlaps_;
}

void Plugins::sent(const Cycle& cycle, EndpointId endpoint) {
  for (const auto& plugin : plugins_) plugin->sent(cycle, endpoint);
}

HeaderFields Plugins::answer_headers(const Member& endpoint) const {
  HeaderFields fields;
  for (const auto& plugin : plugins_) plugin->add_answer_headers(endpoint, fields);
  return fields;
}

void Plugins::cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) {
  for (const auto& plugin : plugins_) plugin->cache_changed(endpoint, events);
}

void Plugins::forget(EndpointId endpoint) {
  for (const auto& plugin : plugins_) plugin->forget(endpoint);
}

void Plugins::restarted(EndpointId endpoint) {
  for (const auto& plugin : plugins_) plugin->restarted(endpoint);
}

void Plugins::expire(std::int64_t now_us) {
  for (const auto& plugin : plugins_) plugin->expire(now_us);
}

void Plugins::finished(std::string_view routing_key) {
  for (const auto& plugin : plugins_) plugin->finished(routing_key);
}

}  // namespace octavo::fleet
