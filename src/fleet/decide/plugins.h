// The plugins of one configuration. Several profiles can use the same plugin.
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

// Size of a producer's index of prefixes.
struct IndexedPrefixes {
  StepName producer;
  IndexSize size;
};

class Plugins {
 public:
  // Errors: an unknown type, a duplicate name, an unknown parameter or one out of range. Field: path of the
  // parameter.
  static Result<std::unique_ptr<Plugins>> make(std::span<const PluginConfig> configs);

  Plugin* find(std::string_view name) const;          // null: unknown name
  const StepName* step(std::string_view name) const;  // null: unknown name
  std::span<const std::string> names() const { return names_; }
  std::vector<IndexedPrefixes> indexed_prefixes() const;  // [producer with an index]

  // Runs all producers. cycle.overlaps has their results until the next call.
  void produce(Cycle& cycle);
  // Returns the reason to refuse a request; nullopt to admit it. Runs the producers if there is an admitter.
  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates);
  void sent(const Cycle& cycle, EndpointId endpoint);
  HeaderFields answer_headers(const Member& endpoint) const;
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events);
  void forget(EndpointId endpoint);
  void restarted(EndpointId endpoint);
  void expire(std::int64_t now_us);

  // For make functions: returns the index of a producer in cycle.overlaps. A producer that is not configured
  // is added with default parameters. Adds errors about `field` to `parameters`.
  std::size_t producer(std::string_view name, Parameters& parameters, std::string_view field);
  // For make functions: returns the plugin of this name, and adds it with default parameters if it is not
  // configured. Null: the plugin cannot be added; the error is in `parameters`.
  Plugin* find_or_add(std::string_view name, Parameters& parameters, std::string_view field);
  // For make functions: adds a request header to read. Returns its name in lower case.
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
