#include "fleet/extproc/endpoint_picker.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "fleet/decide/eligible.h"
#include "fleet/decide/kv_source.h"
#include "fleet/decide/session.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/view/address_list.h"

namespace octavo::fleet {
namespace {

Refusal no_endpoints() {
  return {503, "failed to find endpoint candidates for serving the request", "rejected-no-endpoints"};
}

constexpr ProbeOptions kScrapesAreProbes{.failure_threshold = 3, .success_threshold = 1};
constexpr BreakerOptions kNoBreaker{
    .enabled = false};  // the gateway sees what requests come to, the picker does not

}  // namespace

Result<std::unique_ptr<EndpointPicker>> EndpointPicker::make(PipelineConfig config) {
  TRY(Pipeline pipeline, Pipeline::make(std::move(config)));
  return std::unique_ptr<EndpointPicker>(new EndpointPicker(std::move(pipeline)));
}

EndpointPicker::EndpointPicker(Pipeline pipeline)
    : seed_(secret_seed()),
      pipeline_(std::move(pipeline)),
      predictor_(pipeline_.predictor()),
      burst_(pipeline_.burst()),
      kv_source_(pipeline_.kv_source()),
      agents_(pipeline_.agents()) {}

std::string_view EndpointPicker::agent(const RouteRequest& request) const {
  return agents_ ? session_of(agents_->sources, request) : std::string_view();
}

Candidates EndpointPicker::candidates(const FleetView& view, const RouteRequest& request,
                                      const Subset& subset) const {
  Candidates found;
  eligible(view, request, Role::both, {}, found);
  if (subset) {
    std::erase_if(found, [&](const Member* member) {
      return std::ranges::none_of(
          *subset, [&](const auto& address) { return address_names(address, member->endpoint->name); });
    });
  }
  return found;
}

Pick EndpointPicker::booked(const Decision& decision, const Cycle& cycle) {
  Pick pick;
  for (std::size_t i = 0; i < decision.picked; ++i) {
    const Score& score = decision.ranking[i];
    pick.endpoints.push_back({cycle.view.find(score.endpoint)->endpoint->name, score.total});
  }
  const auto tokens = static_cast<std::int64_t>(cycle.request.tokens.size());
  pick.booking = inflight_.book(decision.chosen(), tokens, tokens - cycle.cached_tokens(decision.chosen()));
  return pick;
}

std::expected<Pick, Refusal> EndpointPicker::pick(const RouteRequest& request, const Subset& subset,
                                                  int priority, EndpointId burst_home) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  Candidates found = candidates(*view, request, subset);
  if (found.empty()) return std::unexpected(no_endpoints());
  Cycle cycle{*view, request, inflight_, now_us(), Draws(draw())};
  cycle.burst_home = burst_home;
  if (const auto why = pipeline_.refusal(cycle, priority, found))
    return std::unexpected(
        Refusal{500, "request cannot be admitted: inference error: ResourceExhausted - " + *why});
  pipeline_.rank(cycle, found, decision_);
  if (decision_.ranking.empty())
    return std::unexpected(
        Refusal{429, "no endpoints available for the given request", "rejected-saturated"});
  const EndpointId answering = decision_.chosen();
  std::optional<LatencyInputs> inputs;  // before it is booked itself
  if (predictor_) inputs = predictor_->inputs(cycle, *view->find(answering));
  Pick pick = booked(decision_, cycle);
  pick.answer_headers = pipeline_.answer_headers(*view->find(answering));
  pick.inputs = inputs;
  pick.encoders = encoders(cycle, subset);
  pick.prefiller = prefiller(cycle, answering, subset);
  const std::string& computing = pick.prefiller.empty() ? pick.endpoints.front().name : pick.prefiller;
  pick.kv_source = kv_source(cycle, computing, subset);
  pipeline_.sent(cycle, answering);
  return pick;
}

std::vector<BurstEndpoint> EndpointPicker::burst_endpoints(const RouteRequest& request,
                                                           const Subset& subset) const {
  const auto view = fleet_.view();
  std::vector<BurstEndpoint> endpoints;
  for (const Member* member : candidates(*view, request, subset))
    endpoints.push_back({member->id, member->endpoint->name, member->state.running});
  return endpoints;
}

// Of a prompt that is computed apart.
std::string EndpointPicker::prefiller(Cycle& cycle, EndpointId answering, const Subset& subset) {
  Candidates found = candidates(cycle.view, cycle.request, subset);
  pipeline_.rank_prefill(cycle, answering, found, decision_);
  const EndpointId chosen = decision_.chosen();
  if (chosen == kNoEndpoint || chosen == answering) return {};
  pipeline_.sent(cycle, chosen);
  return cycle.view.find(chosen)->endpoint->name;
}

// Of a prompt with images or sound.
std::string EndpointPicker::encoders(Cycle& cycle, const Subset& subset) {
  if (cycle.request.media.empty()) return {};
  Candidates found = candidates(cycle.view, cycle.request, subset);
  pipeline_.rank_encode(cycle, found, decision_);
  std::string names;
  for (std::size_t i = 0; i < decision_.picked; ++i)
    names += (i > 0 ? "," : "") + cycle.view.find(decision_.ranking[i].endpoint)->endpoint->name;
  return names;
}

// Beside who computes the prompt.
std::string EndpointPicker::kv_source(Cycle& cycle, std::string_view computing, const Subset& subset) {
  if (!kv_source_) return {};
  const Candidates found = candidates(cycle.view, cycle.request, subset);
  const Member* source = kv_source_->source(cycle, found, cycle.view.find(computing)->id);
  return source ? source->endpoint->name : std::string();
}

std::expected<Pick, Refusal> EndpointPicker::pick_any(const RouteRequest& request, const Subset& subset) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const Candidates found = candidates(*view, request, subset);
  if (found.empty()) return std::unexpected(no_endpoints());
  Cycle cycle{*view, request, inflight_, now_us(), Draws(draw())};
  Candidates ranked = found;
  pipeline_.rank(cycle, ranked, decision_);
  if (decision_.ranking.empty()) {  // all are filtered away: load is no reason to refuse it
    decision_.ranking.push_back({found[cycle.draws.below(found.size())]->id, 0});
    decision_.picked = 1;
  }
  Pick pick = booked(decision_, cycle);
  pick.answer_headers = pipeline_.answer_headers(*view->find(decision_.chosen()));
  return pick;
}

std::string EndpointPicker::any_url() {
  const auto view = fleet_.view();
  const Candidates found = candidates(*view, {}, {});
  return found.empty() ? std::string() : found[Draws(draw()).below(found.size())]->endpoint->url;
}

void EndpointPicker::cache_changed(const Member& endpoint, std::span<const CacheEvent> events) {
  const std::lock_guard lock(caches_);
  const auto now = fleet_.view();
  const Member* member = now->find(endpoint.id);
  if (member && member->endpoint->name == endpoint.endpoint->name)
    pipeline_.cache_changed(endpoint.id, events);
}

double EndpointPicker::saturation(const SaturationDetector& detector) {
  if (const auto* by_use = std::get_if<UtilizationDetector>(&detector))
    return by_use->saturation(*fleet_.view(), now_us());
  const std::lock_guard lock(mutex_);
  return std::get<ConcurrencyDetector>(detector).saturation(*fleet_.view(), inflight_);
}

void EndpointPicker::first_token(Booking& booking) {
  const std::lock_guard lock(mutex_);
  inflight_.first_token(booking);
}

void EndpointPicker::grow(Booking& booking, std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  inflight_.grow(booking, tokens);
}

void EndpointPicker::took(const Booking& booking, const LatencyInputs& inputs, double ttft_ms,
                          double tpot_ms) {
  const std::lock_guard lock(mutex_);
  if (!slots_[booking.endpoint].removed) predictor_->learn(booking.endpoint, inputs, ttft_ms, tpot_ms);
}

void EndpointPicker::ended(Booking& booking) {
  const std::lock_guard lock(mutex_);
  const EndpointId id = booking.endpoint;
  inflight_.free(booking);
  if (slots_[id].removed) release_if_idle(id);
}

void EndpointPicker::set_endpoints(std::vector<Endpoint> endpoints) {
  const std::lock_guard lock(mutex_);
  const auto before = fleet_.view();
  for (const Member& member : before->members)
    if (std::ranges::find(endpoints, member.endpoint->name, &Endpoint::name) == endpoints.end())
      remove(member.id);
  for (Endpoint& endpoint : endpoints) {
    if (const Member* known = before->find(endpoint.name)) {
      endpoint.adapters = known->endpoint->adapters;  // which who lists endpoints does not know
      fleet_.describe(known->id, std::move(endpoint));
    } else if (const auto added = add(std::move(endpoint)); !added) {
      log_warning("an endpoint is left out: {}", added.error().message);
    }
  }
}

void EndpointPicker::set_adapters(std::string_view name, std::vector<std::string> adapters) {
  const std::lock_guard lock(mutex_);
  const auto now = fleet_.view();
  const Member* member = now->find(name);
  if (!member || member->endpoint->adapters == adapters) return;
  Endpoint endpoint = *member->endpoint;
  endpoint.adapters = std::move(adapters);
  fleet_.describe(member->id, std::move(endpoint));
}

Result<> EndpointPicker::add(Endpoint endpoint) {
  TRY(const EndpointId id, fleet_.add(std::move(endpoint)));
  if (id >= slots_.size()) slots_.resize(id + std::size_t{1});
  slots_[id] = {std::make_unique<EndpointHealth>(kScrapesAreProbes, kNoBreaker), false};
  return {};
}

void EndpointPicker::remove(EndpointId id) {
  fleet_.remove(id);
  forget(id);
  slots_[id].removed = true;
  release_if_idle(id);
}

void EndpointPicker::forget(EndpointId id) {
  const std::lock_guard lock(caches_);
  pipeline_.forget(id);
}

void EndpointPicker::release_if_idle(EndpointId id) {
  if (inflight_.load(id).requests > 0) return;
  slots_[id] = {};
  fleet_.release(id);
}

void EndpointPicker::scraped(std::vector<Scrape> scrapes) {
  const std::lock_guard lock(mutex_);
  fleet_.update([&](Member& member) {
    bool changed = false;
    for (Scrape& scrape : scrapes)
      if (scrape.endpoint == member.id) changed |= take(scrape, member);
    return changed;
  });
}

// Whether it changes what is known of the member.
bool EndpointPicker::take(Scrape& scrape, Member& member) {
  EndpointState& state = member.state;
  bool changed = scrape.state.has_value();
  if (scrape.state) {
    if (has_restarted(state, *scrape.state)) {
      log_info("{} has started anew: its prefixes are forgotten", member.endpoint->name);
      pipeline_.restarted(member.id);
    }
    if (scrape.state->attributes) scrape.attributes.insert(scrape.state->attributes->begin(), scrape.state->attributes->end());
    scrape.state->attributes = state.attributes;
    scrape.state->availability = state.availability;
    state = *std::move(scrape.state);
  }
  if (!scrape.attributes.empty()) {
    if (state.attributes) scrape.attributes.insert(state.attributes->begin(), state.attributes->end());
    state.attributes = std::make_shared<const Attributes>(std::move(scrape.attributes));
    changed = true;
  }
  if (!scrape.answered) return changed;
  const Availability before = state.availability;
  slots_[member.id].health->probed(*scrape.answered);
  state.availability = slots_[member.id].health->availability(0);
  if (state.availability == before) return changed;
  const bool available = state.availability == Availability::available;
  log_info("{} {}", member.endpoint->name, available ? "answers" : "does not answer");
  if (!available) forget(member.id);  // what it held may be gone when it comes back
  return true;
}

void EndpointPicker::expire() {
  const std::lock_guard lock(mutex_);
  pipeline_.expire(now_us());
}

}  // namespace octavo::fleet
