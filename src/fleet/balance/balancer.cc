#include "fleet/balance/balancer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fleet/balance/explanation.h"
#include "fleet/decide/eligible.h"
#include "fleet/decide/kv_source.h"
#include "fleet/decide/session.h"
#include "fleet/health/slow_start.h"
#include "fleet/view/address_list.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kPauseMaxS = 60;

Refusal no_endpoints() {
  return {503, "failed to find endpoint candidates for serving the request", "rejected-no-endpoints"};
}

}  // namespace

Result<std::unique_ptr<Balancer>> Balancer::make(BalancerOptions options) {
  std::vector<Pool> pools;
  for (PoolOptions& each : options.pools) {
    TRY(Pipeline pipeline, Pipeline::make(std::move(each.pipeline)));
    pools.push_back({each.part, std::move(each.policy), std::move(pipeline)});
  }
  return std::unique_ptr<Balancer>(new Balancer(std::move(options), std::move(pools)));
}

Balancer::Balancer(BalancerOptions options, std::vector<Pool> pools)
    : options_(std::move(options)), pools_(std::move(pools)), expired_us_(options_.clock()) {}

std::string_view Balancer::agent(const RouteRequest& request) const {
  const AgentIdentity* agents = pools_.back().pipeline.agents();
  return agents ? session_of(agents->sources, request) : std::string_view();
}

void Balancer::find_candidates(const FleetView& view, const RouteRequest& request,
                               const ChoiceOptions& options, std::span<const EndpointId> excluded,
                               Candidates& found) const {
  eligible(view, request, options.part, excluded, found);
  if (!options.subset || !*options.subset) return;
  std::erase_if(found, [&](const Member* member) {
    return std::ranges::none_of(**options.subset, [&](const std::string& address) {
      return address_names(address, member->endpoint->name);
    });
  });
}

std::expected<Choice, Refusal> Balancer::choose(const RouteRequest& request, const ChoiceOptions& options) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const std::int64_t now = options_.clock();
  pace_.compare(now);
  Cycle cycle{*view, request, inflight_, pace_, now, Draws(options.draw ? *options.draw : draw())};
  cycle.burst_home = options.burst_home;
  cycle.timer = options.timer;
  decision_.explain = options.explain;
  Pool& from = pool(options.part);
  if (auto refusal = rank(from, cycle, options)) return std::unexpected(*std::move(refusal));
  const Member& chosen = *view->find(decision_.chosen());
  // If no prefill worker is healthy, the caller lets a decode worker compute the prompt.
  if (options.part == Role::prefill && chosen.state.availability == Availability::broken)
    return std::unexpected(Refusal{503, "no prefill worker is available"});
  const LatencyPredictor* predictor = options.bodiless ? nullptr : from.pipeline.predictor();
  // The inputs are computed before the booking, so that they do not include this request.
  std::optional<LatencyInputs> inputs;
  if (predictor) inputs = predictor->inputs(cycle, chosen);
  Choice choice = book(cycle, options);
  choice.inputs = inputs;
  choice.answer_headers = from.pipeline.answer_headers(chosen);
  if (options.explain) choice.explanation = explain(cycle, from.policy, decision_);
  if (!options.bodiless) add_helpers(from, cycle, options, choice);
  return choice;
}

std::optional<std::int64_t> Balancer::new_tokens(const RouteRequest& request, const ChoiceOptions& options) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const std::int64_t now = options_.clock();
  pace_.compare(now);
  Cycle cycle{*view, request, inflight_, pace_, now, Draws(options.draw ? *options.draw : draw())};
  cycle.trial = true;
  decision_.explain = false;
  if (rank(pool(options.part), cycle, options)) return std::nullopt;
  return static_cast<std::int64_t>(request.tokens.size()) - cycle.cached_tokens(decision_.chosen());
}

// Ranks endpoints into decision_, in at most two attempts. The first excludes the endpoints that leave_out()
// returns. The second excludes only options.excluded, and paused endpoints if options.rested is set.
std::optional<Refusal> Balancer::rank(Pool& from, Cycle& cycle, const ChoiceOptions& options) {
  if (rank_named(from, cycle, options)) return std::nullopt;
  leave_out(cycle, options.excluded);
  bool any = false;
  for (const bool last : {false, true}) {
    if (last) {
      // skipped if the first attempt excluded nothing more than options.excluded
      if (left_out_.size() == options.excluded.size()) break;
      left_out_.assign(options.excluded.begin(), options.excluded.end());
      if (options.rested) leave_out_paused(cycle);
    }
    find_candidates(cycle.view, cycle.request, options, left_out_, found_);
    if (found_.empty()) continue;
    any = true;
    if (!options.bodiless)
      if (const auto why = from.pipeline.refusal(cycle, options.priority, found_))
        return Refusal{500, "request cannot be admitted: inference error: ResourceExhausted - " + *why};
    const EndpointId random = options.bodiless ? found_[cycle.draws.below(found_.size())]->id : kNoEndpoint;
    from.pipeline.rank(cycle, found_, decision_);
    if (decision_.ranking.empty() && options.bodiless) {
      decision_.ranking.push_back({random, 0});
      decision_.picked = 1;
    }
    if (!decision_.ranking.empty()) return std::nullopt;
  }
  if (!any) return no_endpoints();
  return Refusal{429, "no endpoints available for the given request", "rejected-saturated"};
}

// Returns false if the endpoint in options.worker is not available. The booking needs the number of tokens
// that this endpoint has cached.
bool Balancer::rank_named(Pool& from, Cycle& cycle, const ChoiceOptions& options) {
  const Member* named = options.worker.empty() ? nullptr : cycle.view.find(options.worker);
  if (!named || named->state.availability != Availability::available ||
      std::ranges::find(options.excluded, named->id) != options.excluded.end())
    return false;
  if (!options.bodiless) from.pipeline.produce(cycle);
  decision_.clear();
  decision_.ranking.push_back({.endpoint = named->id});
  decision_.picked = 1;
  return true;
}

void Balancer::leave_out_paused(const Cycle& cycle) {
  if (cycle.now_us >= paused_until_us_) return;
  for (const Member& member : cycle.view.members)
    if (slots_[member.id].health->paused(cycle.now_us)) left_out_.push_back(member.id);
}

void Balancer::leave_out_full(const Cycle& cycle) {
  for (const Member& member : cycle.view.members)
    if (slots_[member.id].capacity.free(inflight_.own(member.id).requests, cycle.now_us) == 0)
      left_out_.push_back(member.id);
}

// Fills left_out_ with the endpoints to exclude: `excluded`, paused and full endpoints, and endpoints with a
// worse priority than the best available endpoint. New endpoints and endpoints of small weight are excluded
// at random.
void Balancer::leave_out(Cycle& cycle, std::span<const EndpointId> excluded) {
  left_out_.assign(excluded.begin(), excluded.end());
  leave_out_paused(cycle);
  if (options_.learn_capacity) leave_out_full(cycle);
  if (options_.slow_start_us == 0 && !ranked_) return;
  const auto takes = [&](const Member& member) {
    return member.state.availability == Availability::available &&
           std::ranges::find(excluded, member.id) == excluded.end();
  };
  std::int64_t oldest_us = cycle.now_us;
  // best priority, and the largest weight among endpoints of this priority
  int priority = std::numeric_limits<int>::max(), weight = 0;
  for (const Member& member : cycle.view.members) {
    if (!takes(member)) continue;
    oldest_us = std::min(oldest_us, slots_[member.id].since_us);
    if (member.endpoint->priority < priority) weight = 0;
    priority = std::min(priority, member.endpoint->priority);
    if (member.endpoint->priority == priority) weight = std::max(weight, member.endpoint->weight);
  }
  for (const Member& member : cycle.view.members) {
    if (!takes(member)) continue;
    double share = member.endpoint->priority == priority ? 1 : 0;
    if (weight > 0) share *= static_cast<double>(member.endpoint->weight) / weight;
    if (options_.slow_start_us > 0)
      share *= slow_start_share(cycle.now_us, slots_[member.id].since_us, oldest_us, options_.slow_start_us);
    if (share < 1 && cycle.draws.unit() >= share) left_out_.push_back(member.id);
  }
}

Choice Balancer::book(const Cycle& cycle, const ChoiceOptions& options) {
  const EndpointId id = decision_.chosen();
  const auto tokens = static_cast<std::int64_t>(cycle.request.tokens.size());
  Choice choice{.endpoint = cycle.view.find(id)->endpoint, .new_tokens = tokens - cycle.cached_tokens(id)};
  for (const Score& score : std::span(decision_.ranking).first(decision_.picked))
    choice.picked.push_back({cycle.view.find(score.endpoint)->endpoint->name, score.total});
  choice.profile = decision_.profile;
  choice.booking = inflight_.book(id, tokens, choice.new_tokens);
  choice.booking.number = ++choices_;
  if (options.computed) inflight_.first_token(choice.booking);
  choice.booking.progress = {.since_us = cycle.now_us,
                             .prompt_tokens = options.computed ? 0 : inflight_.load(id).prefill_tokens};
  load_changed(id);
  return choice;
}

// Chooses the endpoints for prefill, image encoding and KV blocks, and reports the whole choice to the
// policy.
void Balancer::add_helpers(Pool& from, Cycle& cycle, const ChoiceOptions& options, Choice& choice) {
  const EndpointId answering = choice.booking.endpoint;
  if (from.pipeline.encodes()) choice.encoders = encoders(from, cycle, options);
  if (from.pipeline.prefills()) choice.prefiller = prefiller(from, cycle, options, answering);
  if (KvSource* sources = from.pipeline.kv_source()) {
    find_candidates(cycle.view, cycle.request, options, {}, found_);
    const EndpointId computing = choice.prefiller.empty() ? answering : cycle.view.find(choice.prefiller)->id;
    if (const Member* source = sources->source(cycle, found_, computing))
      choice.kv_source = source->endpoint->name;
  }
  from.pipeline.sent(cycle, answering);
}

// Returns the name of the prefill endpoint. Returns "" if `answering` computes the prompt.
std::string Balancer::prefiller(Pool& from, Cycle& cycle, const ChoiceOptions& options,
                                EndpointId answering) {
  find_candidates(cycle.view, cycle.request, options, {}, found_);
  from.pipeline.rank_prefill(cycle, answering, found_, decision_);
  const EndpointId chosen = decision_.chosen();
  if (chosen == kNoEndpoint || chosen == answering) return {};
  from.pipeline.sent(cycle, chosen);
  return cycle.view.find(chosen)->endpoint->name;
}

// Returns the comma-separated names of encode endpoints. Returns "" if the prompt has no images, videos or
// audio.
std::string Balancer::encoders(Pool& from, Cycle& cycle, const ChoiceOptions& options) {
  if (cycle.request.media.empty()) return {};
  find_candidates(cycle.view, cycle.request, options, {}, found_);
  from.pipeline.rank_encode(cycle, found_, decision_);
  std::string names;
  for (const Score& score : std::span(decision_.ranking).first(decision_.picked))
    names += (names.empty() ? "" : ",") + cycle.view.find(score.endpoint)->endpoint->name;
  return names;
}

std::vector<BurstEndpoint> Balancer::burst_endpoints(const RouteRequest& request,
                                                     const Subset& subset) const {
  const auto view = fleet_.view();
  Candidates found;
  find_candidates(*view, request, {.subset = &subset}, {}, found);
  std::vector<BurstEndpoint> endpoints;
  for (const Member* member : found)
    endpoints.push_back({member->id, member->endpoint->name, member->state.running});
  return endpoints;
}

std::string Balancer::any_url() {
  const auto view = fleet_.view();
  Candidates found;
  find_candidates(*view, {}, {}, {}, found);
  return found.empty() ? std::string() : found[Draws(draw()).below(found.size())]->endpoint->url;
}

double Balancer::saturation(const SaturationDetector& detector) const {
  if (const auto* by_use = std::get_if<UtilizationDetector>(&detector))
    return by_use->saturation(*fleet_.view(), options_.clock());
  const std::lock_guard lock(mutex_);
  return std::get<ConcurrencyDetector>(detector).saturation(*fleet_.view(), inflight_);
}

int Balancer::stale_endpoints(const SaturationDetector& detector) const {
  const auto* by_use = std::get_if<UtilizationDetector>(&detector);
  if (!by_use) return 0;
  const auto view = fleet_.view();
  const std::int64_t now = options_.clock();
  return static_cast<int>(
      std::ranges::count_if(view->members, [&](const Member& member) { return by_use->stale(member, now); }));
}

void Balancer::watch(const Booking& booking, std::function<void(Trouble)> troubled, std::int64_t silence_us) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[booking.endpoint];
  if (slot.health->availability(options_.clock()) == Availability::unhealthy) troubled(Trouble::unhealthy);
  const std::int64_t now = options_.clock();
  slot.watches[booking.number] = {std::move(troubled), now, now, silence_us};
}

void Balancer::first_token(Booking& booking) {
  const std::lock_guard lock(mutex_);
  const EndpointId id = booking.endpoint;
  const std::int64_t now = options_.clock();
  inflight_.first_token(booking);
  pace_.first_token(id, booking.progress, now);
  if (const auto watch = slots_[id].watches.find(booking.number); watch != slots_[id].watches.end()) {
    watch->second.answered = true;
    watch->second.active_us = now;
  }
  load_changed(id);
}

void Balancer::grow(Booking& booking, std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = options_.clock();
  inflight_.grow(booking, tokens);
  pace_.grow(booking.endpoint, booking.progress, tokens, now);
  auto& watches = slots_[booking.endpoint].watches;
  if (const auto watch = watches.find(booking.number); watch != watches.end()) {
    watch->second.idle_reads = 0;
    watch->second.active_us = now;
  }
}

void Balancer::took(const Booking& booking, const LatencyInputs& inputs, double ttft_ms, double tpot_ms) {
  const std::lock_guard lock(mutex_);
  if (!slots_[booking.endpoint].removed)
    pools_.back().pipeline.predictor()->learn(booking.endpoint, inputs, ttft_ms, tpot_ms);
}

void Balancer::ended(Booking& booking, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  const EndpointId id = booking.endpoint;
  slots_[id].watches.erase(booking.number);
  pace_.ended(booking.progress);
  inflight_.free(booking);
  load_changed(id);
  if (slots_[id].removed) return release_if_idle(id);
  if (outcome == Outcome::neither) return;
  if (outcome == Outcome::success) slots_[id].capacity.succeeded();
  const std::int64_t now = options_.clock();
  slots_[id].health->answered(outcome == Outcome::success, now);
  publish_availability(id, now);
}

void Balancer::failed(const Endpoint& endpoint) {
  const std::lock_guard lock(mutex_);
  const auto known = ids_.find(endpoint.name);
  if (known == ids_.end()) return;
  const std::int64_t now = options_.clock();
  slots_[known->second].health->answered(false, now);
  publish_availability(known->second, now);
}

void Balancer::pause(const Endpoint& endpoint, std::int64_t seconds) {
  const std::lock_guard lock(mutex_);
  const auto known = ids_.find(endpoint.name);
  if (known == ids_.end()) return;
  const std::int64_t until_us = options_.clock() + std::min(seconds, kPauseMaxS) * 1'000'000;
  slots_[known->second].health->pause(until_us);
  paused_until_us_ = std::max(paused_until_us_, until_us);
}

void Balancer::refused(const Booking& booking, std::optional<std::int64_t> seconds) {
  const std::lock_guard lock(mutex_);
  std::optional<std::int64_t> pause_us;
  if (seconds) pause_us = std::min(*seconds, kPauseMaxS) * 1'000'000;
  const int others = inflight_.own(booking.endpoint).requests - 1;
  slots_[booking.endpoint].capacity.refused(others, options_.clock(), pause_us);
}

int Balancer::room() const {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = options_.clock();
  const auto view = fleet_.view();
  int room = 0;
  bool any = false;
  for (const Member& member : view->members) {
    if (member.state.availability != Availability::available || member.endpoint->role == Role::prefill)
      continue;
    any = true;
    const int free = slots_[member.id].capacity.free(inflight_.own(member.id).requests, now);
    if (free == LearnedCapacity::kUnknown) return free;
    room += free;
  }
  return any ? room : LearnedCapacity::kUnknown;
}

}  // namespace octavo::fleet
