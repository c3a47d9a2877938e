// A policy at work: its plugins, and the profile that chooses with them. `octavo route`, `octavo pick` and
// the simulator use it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleet/decide/plugins.h"
#include "fleet/decide/profile.h"

namespace octavo::fleet {

class AgentIdentity;
class BurstPrefixProducer;
class HeldBlocks;
class KvSource;
class LatencyPredictor;

// Prompts that another endpoint computes before the chosen one answers: prompts of at least `prompt_tokens`
// tokens, at least `new_tokens` of which the chosen endpoint does not hold.
struct PrefillRule {
  std::vector<StepConfig> steps = {};  // the profile that chooses the prefill endpoint
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
};

// One profile of several, selected by a header of the request.
struct ProfilesByHeader {
  std::string header = "epp-profile";
  std::string unnamed = "decode";  // for requests whose header names no profile
  std::map<std::string, std::vector<StepConfig>, std::less<>> profiles = {};
};

struct PipelineConfig {
  std::vector<PluginConfig> plugins = {};
  std::vector<StepConfig> steps = {};
  std::optional<PrefillRule> prefill = {};
  std::optional<std::vector<StepConfig>> encode =
      {};  // the profile that chooses the endpoint that encodes images and sound
  std::optional<ProfilesByHeader> by_header = {};  // in place of `steps`
};

// One thread at a time.
class Pipeline {
 public:
  // Adds max-score-picker if the configuration names no picker.
  static Result<Pipeline> make(PipelineConfig config);

  // Ranks the endpoints that may do this part of the request's work (see eligible()). decision.explain says
  // whether the steps are recorded. The request is not booked yet: the caller sends it, then calls sent().
  void choose(Cycle& cycle, Role part, std::span<const EndpointId> excluded, Decision& decision);

  // The reason to refuse a request of this priority, if any. Call it before rank(), with a candidate or more.
  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) {
    return plugins_->refusal(cycle, priority, candidates);
  }
  // Names of further request headers that the plugins read.
  std::span<const std::string> headers() const { return plugins_->headers(); }

  // The same for candidates from the caller; they are used up. The ranking is empty if no candidate is left,
  // or the request's header names no profile.
  void rank(Cycle& cycle, Candidates& candidates, Decision& decision);

  // Ranks the candidates (which are used up) that may compute the prompt for `answering`. Call it after
  // rank(). If the ranking is empty, `answering` computes the prompt itself.
  void rank_prefill(Cycle& cycle, EndpointId answering, Candidates& candidates, Decision& decision);

  // Ranks the candidates (which are used up) that may encode the prompt's images and sound. Call it after
  // rank(). If the ranking is empty, the endpoint that computes the prompt encodes them.
  void rank_encode(Cycle& cycle, Candidates& candidates, Decision& decision);

  // The request of the last choose() goes to `endpoint`: caches are taken to hold its prompt from now on.
  void sent(const Cycle& cycle, EndpointId endpoint) { plugins_->sent(cycle, endpoint); }
  // On any thread, concurrently with all calls except forget().
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) {
    plugins_->cache_changed(endpoint, events);
  }
  void forget(EndpointId endpoint) { plugins_->forget(endpoint); }
  void restarted(EndpointId endpoint) { plugins_->restarted(endpoint); }
  // Header fields for the endpoint's answer, which the client sends with its next request.
  HeaderFields answer_headers(const Member& endpoint) const { return plugins_->answer_headers(endpoint); }
  bool prefills() const { return prefill_.has_value(); }
  bool encodes() const { return encode_.has_value(); }
  // The plugin that learns from latencies; may be null.
  LatencyPredictor* predictor() const;
  // The plugin that places simultaneous requests together; may be null.
  const BurstPrefixProducer* burst() const;
  // The plugin that names the endpoint to fetch blocks from; may be null.
  KvSource* kv_source() const;
  // The state of the agents' sessions; null if no plugin uses it.
  const AgentIdentity* agents() const;
  // The blocks that endpoints have reported; null if no plugin keeps them.
  HeldBlocks* held_blocks() const;
  void expire(std::int64_t now_us) { plugins_->expire(now_us); }
  std::vector<IndexedPrefixes> indexed_prefixes() const { return plugins_->indexed_prefixes(); }

 private:
  struct Prefill {
    PrefillRule rule;
    Profile profile;
  };

  struct ByHeader {
    std::string header, unnamed;
    std::map<std::string, Profile, std::less<>> profiles;
  };

  template <class Kind>
  Kind* find() const;
  static Result<std::optional<ByHeader>> make_by_header(PipelineConfig& config, Plugins& plugins);
  Profile* profile_of(const RouteRequest& request);

  Pipeline(std::unique_ptr<Plugins> plugins, Profile profile, std::optional<ByHeader> by_header,
           std::optional<Prefill> prefill, std::optional<Profile> encode)
      : plugins_(std::move(plugins)),
        profile_(std::move(profile)),
        by_header_(std::move(by_header)),
        prefill_(std::move(prefill)),
        encode_(std::move(encode)) {}

  std::unique_ptr<Plugins> plugins_;
  Profile profile_;
  std::optional<ByHeader> by_header_;
  std::optional<Prefill> prefill_;
  std::optional<Profile> encode_;
  Candidates candidates_;
};

}  // namespace octavo::fleet
