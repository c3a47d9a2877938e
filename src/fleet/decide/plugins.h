// The plugins of one configuration, made once, by name. Several profiles may use the same one.
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
  std::string name = {};  // "": the type
  std::string type = {};
  boost::json::object parameters = {};
};

// What a producer knows of prefixes: which endpoint holds which blocks.
struct IndexedPrefixes {
  StepName producer;
  IndexSize size;
};

class Plugins {
 public:
  // Errors: an unknown type, a name used twice, a parameter that is unknown or out of range (field: its
  // path).
  static Result<std::unique_ptr<Plugins>> make(std::span<const PluginConfig> configs);

  Plugin* find(std::string_view name) const;  // null: there is none
  const StepName* step(std::string_view name) const;  // null: there is none
  std::span<const std::string> names() const { return names_; }
  std::vector<IndexedPrefixes> indexed_prefixes() const;  // of each producer with an index

  // Runs all producers and leaves what they found in cycle.overlaps, which stays good until the next call.
  void produce(Cycle& cycle);
  // Reason to refuse a request; nullopt: it is admitted. Runs producers if an admitter exists.
  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates);
  void sent(const Cycle& cycle, EndpointId endpoint);
  HeaderFields answer_headers(const Member& endpoint) const;
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events);
  void forget(EndpointId endpoint);
  void restarted(EndpointId endpoint);
  void expire(std::int64_t now_us);

  // For make functions: the place in cycle.overlaps of a producer, made with its defaults when no one has
  // configured it. Errors are left in `parameters` under `field`.
  std::size_t producer(std::string_view name, Parameters& parameters, std::string_view field);
  // For make functions: the plugin of that name, made with its defaults when no one has configured it. Null:
  // there can be none, and the mistake is left in `parameters`.
  Plugin* find_or_add(std::string_view name, Parameters& parameters, std::string_view field);
  // For make functions: requests are to be read with this header. Its name as it stands in requests.
  std::string reads_header(std::string_view name);
  std::span<const std::string> headers() const { return headers_; }

 private:
  Plugins() = default;
  Result<> add(const PluginConfig& config, std::string where);

  std::vector<std::string> names_;
  std::vector<StepName> steps_;                   // by names_
  std::vector<std::unique_ptr<Plugin>> plugins_;  // by names_
  std::vector<Admitter*> admitters_;
  std::vector<Producer*> producers_;
  std::vector<StepName> producer_steps_;  // by producers_
  std::vector<Overlap> overlaps_;  // by producers_
  std::vector<std::string> headers_;
};

}  // namespace octavo::fleet
