// A policy at work: its plugins and their one profile. What `octavo route` and the simulator ask.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fleet/decide/plugins.h"
#include "fleet/decide/profile.h"

namespace octavo::fleet {

struct PipelineConfig {
  std::vector<PluginConfig> plugins = {};
  std::vector<StepConfig> steps = {};
};

// One thread at a time.
class Pipeline {
 public:
  // max-score-picker is added where no picker is named.
  static Result<Pipeline> make(PipelineConfig config);

  // Ranks the endpoints that may do this part of the request's work (see eligible()). decision.explain says
  // whether the steps are told. The request is not booked yet: the caller sends it, then calls sent().
  void choose(Cycle& cycle, Role part, std::span<const EndpointId> excluded, Decision& decision);

  // The same for candidates that the caller has found; they are used up.
  void rank(Cycle& cycle, Candidates& candidates, Decision& decision);

  // The request of the last choose() goes to `endpoint`: caches are taken to hold its prompt from now on.
  void sent(const Cycle& cycle, EndpointId endpoint) { plugins_->sent(cycle, endpoint); }
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) {
    plugins_->cache_changed(endpoint, events);
  }
  void forget(EndpointId endpoint) { plugins_->forget(endpoint); }
  void expire(std::int64_t now_us) { plugins_->expire(now_us); }

 private:
  Pipeline(std::unique_ptr<Plugins> plugins, Profile profile)
      : plugins_(std::move(plugins)), profile_(std::move(profile)) {}

  std::unique_ptr<Plugins> plugins_;
  Profile profile_;
  Candidates candidates_;
};

}  // namespace octavo::fleet
