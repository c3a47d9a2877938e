// A Pipeline runs one policy: it has the policy's plugins and profiles. The balancer owns one for each pool
// of endpoints.
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

// A separate prefill endpoint computes the prompt if the prompt has at least `prompt_tokens` tokens, and at
// least `new_tokens` of them are not cached at the chosen endpoint.
struct PrefillRule {
  std::vector<StepConfig> steps = {};
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
};

// Several profiles, of which a request header selects one.
struct ProfilesByHeader {
  std::string header = "epp-profile";
  std::string unnamed = "decode";  // profile if the header is missing
  std::map<std::string, std::vector<StepConfig>, std::less<>> profiles = {};
};

struct PipelineConfig {
  std::vector<PluginConfig> plugins = {};
  std::vector<StepConfig> steps = {};
  std::optional<PrefillRule> prefill = {};
  // profile that picks the endpoint for encoding images and audio
  std::optional<std::vector<StepConfig>> encode = {};
  std::optional<ProfilesByHeader> by_header = {};  // used instead of `steps`
};

// Not thread-safe, except where stated.
class Pipeline {
 public:
  // Adds max-score-picker if the configuration has no picker.
  static Result<Pipeline> make(PipelineConfig config);

  // Ranks the eligible() endpoints with the role `part`. The caller then sends the request and calls
  // sent().
  void choose(Cycle& cycle, Role part, std::span<const EndpointId> excluded, Decision& decision);

  // Returns the reason to refuse a request of this priority, or nullopt to admit it. Must be called before
  // rank(), and needs at least one candidate.
  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) {
    return plugins_->refusal(cycle, priority, candidates);
  }
  std::span<const std::string> headers() const { return plugins_->headers(); }

  // Computes the inputs of rank(), such as the number of cached tokens of each endpoint. rank() calls it
  // itself.
  void produce(Cycle& cycle) { plugins_->produce(cycle); }

  // Ranks the candidates, and empties the list. The ranking is empty if the filters remove all candidates,
  // or if the request header names an unknown profile.
  void rank(Cycle& cycle, Candidates& candidates, Decision& decision);

  // Ranks the candidates that may compute the prompt for the endpoint `answering`, and empties the list.
  // Must be called after rank(). If the ranking is empty, `answering` computes the prompt.
  void rank_prefill(Cycle& cycle, EndpointId answering, Candidates& candidates, Decision& decision);

  // Ranks the candidates that may encode the prompt's images and audio, and empties the list. Must be
  // called after rank(). If the ranking is empty, the endpoint that computes the prompt also encodes.
  void rank_encode(Cycle& cycle, Candidates& candidates, Decision& decision);

  // Reports that the caller has sent the request of the last choose() to `endpoint`. Plugins then assume
  // that the endpoint caches the prompt.
  void sent(const Cycle& cycle, EndpointId endpoint) { plugins_->sent(cycle, endpoint); }
  // May be called on any thread, concurrently with all functions except forget().
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) {
    plugins_->cache_changed(endpoint, events);
  }
  void forget(EndpointId endpoint) { plugins_->forget(endpoint); }
  void finished(std::string_view routing_key) { plugins_->finished(routing_key); }
  void restarted(EndpointId endpoint) { plugins_->restarted(endpoint); }
  // Returns header fields to add to the response of the endpoint. The client sends them with its next
  // request.
  HeaderFields answer_headers(const Member& endpoint) const { return plugins_->answer_headers(endpoint); }
  bool prefills() const { return prefill_.has_value(); }
  bool encodes() const { return encode_.has_value(); }
  // null: the policy has no such plugin
  LatencyPredictor* predictor() const;
  // null: the policy has no such plugin
  const BurstPrefixProducer* burst() const;
  // null: the policy has no such plugin
  KvSource* kv_source() const;
  // null: the policy has no such plugin
  const AgentIdentity* agents() const;
  // null: no plugin indexes KV cache events
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
