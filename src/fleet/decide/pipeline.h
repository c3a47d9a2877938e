// A running policy: its plugins, and the profile that uses them. `octavo route`, `octavo pick` and the
// simulator use it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/decide/plugins.h"
#include "fleet/decide/profile.h"

namespace octavo::fleet {

class AgentIdentity;
class BurstPrefixProducer;
class HeldBlocks;
class KvSource;
class LatencyPredictor;

// Selects the prompts that a prefill endpoint computes: at least `prompt_tokens` tokens, of which at least
// `new_tokens` are not cached at the chosen endpoint.
struct PrefillRule {
  std::vector<StepConfig> steps = {};  // profile that chooses the prefill endpoint
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
};

// Several profiles; a header of the request selects one.
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
      {};  // profile that chooses the endpoint that encodes images and audio
  std::optional<ProfilesByHeader> by_header = {};  // used instead of `steps`
};

// Not thread-safe, except where noted.
class Pipeline {
 public:
  // Adds max-score-picker if the configuration has no picker.
  static Result<Pipeline> make(PipelineConfig config);

  // Ranks the endpoints that can do this part of the request's work (see eligible()). If decision.explain is
  // set, records the steps. Does not send the request: the caller sends it, then calls sent().
  void choose(Cycle& cycle, Role part, std::span<const EndpointId> excluded, Decision& decision);

  // The reason to refuse a request of this priority; nullopt: it is admitted. Call it before rank(), with at
  // least one candidate.
  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) {
    return plugins_->refusal(cycle, priority, candidates);
  }
  // Names of request headers that the plugins read.
  std::span<const std::string> headers() const { return plugins_->headers(); }

  // Ranks the caller's candidates, and empties their list. The ranking is empty if no candidate remains, or
  // if the request's header names no profile.
  void rank(Cycle& cycle, Candidates& candidates, Decision& decision);

  // Ranks the candidates that can compute the prompt for `answering`, and empties their list. Call it after
  // rank(). If the ranking is empty, `answering` computes the prompt itself.
  void rank_prefill(Cycle& cycle, EndpointId answering, Candidates& candidates, Decision& decision);

  // Ranks the candidates that can encode the prompt's images and audio, and empties their list. Call it after
  // rank(). If the ranking is empty, the endpoint that computes the prompt encodes them.
  void rank_encode(Cycle& cycle, Candidates& candidates, Decision& decision);

  // Reports that the request of the last choose() is sent to `endpoint`. From now on its cache is assumed to
  // contain the prompt.
  void sent(const Cycle& cycle, EndpointId endpoint) { plugins_->sent(cycle, endpoint); }
  // Safe from any thread, concurrently with all calls except forget().
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) {
    plugins_->cache_changed(endpoint, events);
  }
  void forget(EndpointId endpoint) { plugins_->forget(endpoint); }
  void restarted(EndpointId endpoint) { plugins_->restarted(endpoint); }
  // Header fields to add to the endpoint's answer; the client sends them with its next request.
  HeaderFields answer_headers(const Member& endpoint) const { return plugins_->answer_headers(endpoint); }
  bool prefills() const { return prefill_.has_value(); }
  bool encodes() const { return encode_.has_value(); }
  // The plugin that learns latencies; null: none.
  LatencyPredictor* predictor() const;
  // The plugin that places bursts; null: none.
  const BurstPrefixProducer* burst() const;
  // The plugin that chooses the endpoint from which to fetch blocks; null: none.
  KvSource* kv_source() const;
  // The sessions of agents; null: no plugin uses them.
  const AgentIdentity* agents() const;
  // The blocks that endpoints have reported; null: no plugin keeps them.
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
  std::pair<std::string_view, Profile*> profile_of(const RouteRequest& request);

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
