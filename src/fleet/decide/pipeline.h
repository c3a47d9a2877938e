// A policy at work: its plugins, and the profile that chooses with them. What `octavo route`, `octavo pick`
// and the simulator ask.
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

// Prompts that another endpoint computes before the chosen one answers: those of at least so many tokens, of
// which the chosen one does not hold at least so many.
struct PrefillRule {
  std::vector<StepConfig> steps = {};  // the profile that chooses who computes
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
};

// One profile of several, by what a header of the request names.
struct ProfilesByHeader {
  std::string header = "epp-profile";
  std::string unnamed = "decode";  // of requests whose header names none
  std::map<std::string, std::vector<StepConfig>, std::less<>> profiles = {};
};

struct PipelineConfig {
  std::vector<PluginConfig> plugins = {};
  std::vector<StepConfig> steps = {};
  std::optional<PrefillRule> prefill = {};
  std::optional<std::vector<StepConfig>> encode =
      {};  // the profile that chooses who encodes images and sound
  std::optional<ProfilesByHeader> by_header = {};  // in place of `steps`
};

// One thread at a time.
class Pipeline {
 public:
  // max-score-picker is added where no picker is named.
  static Result<Pipeline> make(PipelineConfig config);

  // Ranks the endpoints that may do this part of the request's work (see eligible()). decision.explain says
  // whether the steps are told. The request is not booked yet: the caller sends it, then calls sent().
  void choose(Cycle& cycle, Role part, std::span<const EndpointId> excluded, Decision& decision);

  // Why a request of this priority is refused, before rank(); nothing: it is not. candidates: at least one.
  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) {
    return plugins_->refusal(cycle, priority, candidates);
  }
  // What the plugins read of a request's headers, beside what every request is read with.
  std::span<const std::string> headers() const { return plugins_->headers(); }

  // The same for candidates that the caller has found; they are used up. An empty ranking: nobody is left, or
  // the request's header names no profile.
  void rank(Cycle& cycle, Candidates& candidates, Decision& decision);

  // Who of the candidates, which are used up, computes the prompt that `answering` answers; to be asked after
  // rank(). An empty ranking: that one itself.
  void rank_prefill(Cycle& cycle, EndpointId answering, Candidates& candidates, Decision& decision);

  // Who of the candidates, which are used up, encodes the images and sound of a prompt that has any; to be
  // asked after rank(). An empty ranking: who computes the prompt.
  void rank_encode(Cycle& cycle, Candidates& candidates, Decision& decision);

  // The request of the last choose() goes to `endpoint`: caches are taken to hold its prompt from now on.
  void sent(const Cycle& cycle, EndpointId endpoint) { plugins_->sent(cycle, endpoint); }
  // On any thread, beside everything but forget().
  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) {
    plugins_->cache_changed(endpoint, events);
  }
  void forget(EndpointId endpoint) { plugins_->forget(endpoint); }
  void restarted(EndpointId endpoint) { plugins_->restarted(endpoint); }
  // Fields for the header of the answer that `endpoint` gives, for the client to send again.
  HeaderFields answer_headers(const Member& endpoint) const { return plugins_->answer_headers(endpoint); }
  bool prefills() const { return prefill_.has_value(); }
  bool encodes() const { return encode_.has_value(); }
  // Who learns from how long answers took; null: nobody does.
  LatencyPredictor* predictor() const;
  // Who places requests that come at the same moment; null: nobody does.
  const BurstPrefixProducer* burst() const;
  // Who knows whose blocks may be fetched; null: nobody does.
  KvSource* kv_source() const;
  // Where agents' sessions stand; null: nobody asks.
  const AgentIdentity* agents() const;
  // What endpoints have told of their caches; null: nobody keeps it.
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
