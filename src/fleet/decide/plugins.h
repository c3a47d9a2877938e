// The plugins of one configuration. Several profiles may use the same plugin.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/plugin.h"
#include "fleet/decide/step_timer.h"

namespace octavo::fleet {

class Parameters;

struct PluginConfig {
  std::string name = {};  // "": the name is the type
  std::string type = {};
  boost::json::object parameters = {};
};

struct IndexedPrefixes {
  StepName producer;
  IndexSize size;
};

class Plugins {
 public:
  // Returns an error on the parameter if a type is unknown, a name occurs twice, or a parameter is unknown
  // or out of range.
  static Result<std::unique_ptr<Plugins>> make(std::span<const PluginConfig> configs);

  Plugin* find(std::string_view name) const;          // null: unknown name
  const StepName* step(std::string_view name) const;  // null: unknown name
  std::span<const std::string> names() const { return names_; }
  std::vector<IndexedPrefixes> indexed_prefixes() const;  // skips producers without an index

  // Runs all producers. cycle.overlaps has their results until the next call.
  void produce(Cycle& cycle);
  // Returns the reason to refuse the request, or nullopt to admit it. Runs the producers if there is an
  // admitter.
  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates);
  void sent(const Cycle& cycle, EndpointId endpoint);
  HeaderFields answer_headers(const Member& endpoint) const;
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events);
  void forget(EndpointId endpoint);
  void restarted(EndpointId endpoint);
  void expire(std::int64_t now_us);
  void finished(std::string_view routing_key);

  // For make functions. Returns the index of the producer's result in cycle.overlaps. If the producer is
  // not configured, adds it with default parameters. Adds errors about `field` to `parameters`.
  std::size_t producer(std::string_view name, Parameters& parameters, std::string_view field);
  // For make functions. Returns the plugin with this name. If the plugin is not configured, adds it with
  // default parameters. Returns null, with the error in `parameters`, if the plugin cannot be added.
  Plugin* find_or_add(std::string_view name, Parameters& parameters, std::string_view field);
  // For make functions. Adds a request header that the plugin reads. Returns the header's name in lower
  // case.
  std::string reads_header(std::string_view name);
  std::span<const std::string> headers() const { return headers_; }

 private:
  Plugins() = default;
  Result<> add(const PluginConfig& config, std::string where);

  std::vector<std::string> names_;
  std::vector<StepName> steps_;                   // in the order of names_
  std::vector<std::unique_ptr<Plugin>> plugins_;  // in the order of names_
  std::vector<Admitter*> admitters_;
  std::vector<Producer*> producers_;
  std::vector<StepName> producer_steps_;  // in the order of producers_
  std::vector<Overlap> overlaps_;         // in the order of producers_
  std::vector<std::string> headers_;
};

}  // namespace octavo::fleet
