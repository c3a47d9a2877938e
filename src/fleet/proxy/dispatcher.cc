#include "fleet/proxy/dispatcher.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "base/rank_endpoint.h"
#include "fleet/decide/eligible.h"
#include "fleet/health/slow_start.h"
#include "fleet/index/held_blocks.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kExpireUs = 1'000'000;
constexpr std::int64_t kPauseMaxS = 60;
constexpr int kIdleReads = 4;  // of a worker's metrics: a request that was on its way has arrived by then
constexpr int kIdleReadsOfStream = 30;  // an engine is idle while its server calls a tool

std::string_view name(Availability availability) {
  switch (availability) {
    case Availability::available:
      return "available";
    case Availability::starting:
      return "starting";
    case Availability::unhealthy:
      return "unhealthy";
    case Availability::broken:
      return "circuit breaker open";
    case Availability::draining:
      return "draining";
  }
  return "";
}

bool are_ranks_of_one(const Endpoint& a, const Endpoint& b) {
  return a.shares_port && b.shares_port && a.url == b.url;
}

std::string explain(const Cycle& cycle, std::string_view policy, const Decision& decision) {
  namespace json = boost::json;
  const FleetView& view = cycle.view;
  const auto named = [&](const std::vector<Score>& scores) {
    json::object out;
    for (const Score& score : scores)
      if (const Member* member = view.find(score.endpoint)) out[member->endpoint->label()] = score.total;
    return out;
  };
  json::array steps;
  for (const Decision::Step& step : decision.steps)
    steps.push_back({{"plugin", step.plugin}, {"weight", step.weight}, {"scores", named(step.scores)}});
  json::object cached;
  for (const Member& member : view.members)
    if (const std::int64_t tokens = cycle.cached_tokens(member.id)) cached[member.endpoint->label()] = tokens;
  const Member* chosen = view.find(decision.chosen());
  return json::serialize(json::object{{"policy", policy},
                                      {"chosen", chosen ? json::value(chosen->endpoint->label()) : json::value()},
                                      {"total", named(decision.ranking)},
                                      {"cached_tokens", std::move(cached)},
                                      {"steps", std::move(steps)}});
}

}  // namespace

Result<std::unique_ptr<Dispatcher>> Dispatcher::make(const RouterOptions& options) {
  std::vector<Pool> pools;
  const auto add = [&](Role part, std::string_view field, const std::string& name) -> Result<> {
    const Policy* policy = find_policy(name);
    if (!policy) return invalid(field, "there is no policy {}", quoted_text(name));
    TRY(Pipeline pipeline, Pipeline::make(policy->pipeline(options.policy_options)));
    pools.push_back({part, name, std::move(pipeline)});
    return {};
  };
  const auto or_common = [&](const std::string& own) { return own.empty() ? options.policy : own; };
  if (options.disaggregated) {
    TRY_VOID(add(Role::prefill, "prefill-policy", or_common(options.prefill_policy)));
    TRY_VOID(add(Role::decode, "decode-policy", or_common(options.decode_policy)));
  } else {
    TRY_VOID(add(Role::both, "policy", options.policy));
  }
  return std::unique_ptr<Dispatcher>(new Dispatcher(options, std::move(pools)));
}

Dispatcher::Dispatcher(const RouterOptions& options, std::vector<Pool> pools)
    : options_(options), seed_(secret_seed()), pools_(std::move(pools)) {}

Dispatcher::Pool& Dispatcher::pool(Role part) { return *std::ranges::find(pools_, part, &Pool::part); }

bool Dispatcher::admit() {
  const int limit = options_.max_concurrent_requests;
  if (++under_way_ <= limit || limit < 0) return true;
  --under_way_;
  metrics_.rate_limited();
  return false;
}

Choice Dispatcher::choose(const RouteRequest& request, const Wish& wish) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  Cycle cycle{*view, request, inflight_, now_us(), Draws(draw())};
  decision_.explain = wish.explain;
  Pool& from = pool(wish.part);
  const Member* chosen = view->find(best(from, cycle, wish));
  // Without a good prefill worker a decode worker computes the prompt.
  if (chosen && wish.part == Role::prefill && chosen->state.availability == Availability::broken) chosen = nullptr;
  Choice choice{.number = ++choices_};
  if (wish.explain) choice.explanation = explain(cycle, from.policy, decision_);
  if (!chosen) return choice;
  from.pipeline.sent(cycle, chosen->id);
  const auto tokens = static_cast<std::int64_t>(request.tokens.size());
  choice.endpoint = chosen->endpoint;
  choice.booking = inflight_.book(chosen->id, tokens, tokens - cycle.cached_tokens(chosen->id));
  if (wish.computed) inflight_.first_token(choice.booking);
  load_changed(chosen->id);
  metrics_.selected(chosen->endpoint->label());
  return choice;
}

// Workers that have asked for a pause, and those of small shares, come last; the wish may rule them out.
EndpointId Dispatcher::best(Pool& from, Cycle& cycle, const Wish& wish) {
  if (const Member* named = wish.worker.empty() ? nullptr : cycle.view.find(wish.worker);
      named && named->state.availability == Availability::available &&
      std::ranges::find(wish.excluded, named->id) == wish.excluded.end()) {
    decision_.clear();
    decision_.ranking.push_back({.endpoint = named->id});
    return named->id;
  }
  leave_out(cycle, wish.excluded);
  from.pipeline.choose(cycle, wish.part, left_out_, decision_);
  if (decision_.chosen() != kNoEndpoint || left_out_.size() == wish.excluded.size()) return decision_.chosen();
  left_out_.assign(wish.excluded.begin(), wish.excluded.end());
  if (wish.rested) leave_out_paused(cycle);
  from.pipeline.choose(cycle, wish.part, left_out_, decision_);
  return decision_.chosen();
}

void Dispatcher::leave_out_paused(const Cycle& cycle) {
  for (const Member& member : cycle.view.members)
    if (slots_[member.id].health->paused(cycle.now_us)) left_out_.push_back(member.id);
}

// Leaves out: `excluded`; workers that have asked for a pause; new workers and those of small weight, as often as
// they shall not get the request; workers of a worse priority than the best available one.
void Dispatcher::leave_out(Cycle& cycle, std::span<const EndpointId> excluded) {
  left_out_.assign(excluded.begin(), excluded.end());
  leave_out_paused(cycle);
  if (options_.slow_start_secs == 0 && !ranked_) return;
  const auto takes = [&](const Member& member) {
    return member.state.availability == Availability::available &&
           std::ranges::find(excluded, member.id) == excluded.end();
  };
  std::int64_t oldest_us = cycle.now_us;
  int priority = std::numeric_limits<int>::max(), weight = 0;  // the best one, and the largest of it
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
    if (options_.slow_start_secs > 0)
      share *= slow_start_share(cycle.now_us, slots_[member.id].since_us, oldest_us,
                                std::int64_t{1'000'000} * options_.slow_start_secs);
    if (share < 1 && cycle.draws.unit() >= share) left_out_.push_back(member.id);
  }
}

void Dispatcher::watch(const Choice& choice, std::function<void(Trouble)> troubled) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[choice.booking.endpoint];
  if (slot.health->availability(now_us()) == Availability::unhealthy) troubled(Trouble::unhealthy);
  slot.watches[choice.number] = {std::move(troubled), now_us()};
}

void Dispatcher::first_token(Choice& choice) {
  const std::lock_guard lock(mutex_);
  const EndpointId id = choice.booking.endpoint;
  inflight_.first_token(choice.booking);
  if (const auto watch = slots_[id].watches.find(choice.number); watch != slots_[id].watches.end())
    watch->second.answered = true;
  load_changed(id);
}

void Dispatcher::grow(Choice& choice, std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  inflight_.grow(choice.booking, tokens);
  auto& watches = slots_[choice.booking.endpoint].watches;
  if (const auto watch = watches.find(choice.number); watch != watches.end()) watch->second.idle_reads = 0;
}

void Dispatcher::ended(Choice& choice, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  const EndpointId id = choice.booking.endpoint;
  inflight_.free(choice.booking);
  slots_[id].watches.erase(choice.number);
  load_changed(id);
  if (slots_[id].removed) return release_if_idle(id);
  if (outcome == Outcome::neither) return;
  const std::int64_t now = now_us();
  slots_[id].health->answered(outcome == Outcome::success, now);
  publish_availability(id, now);
}

void Dispatcher::failed(const Endpoint& endpoint) {
  const std::lock_guard lock(mutex_);
  const auto known = ids_.find(endpoint.name);
  if (known == ids_.end()) return;
  const std::int64_t now = now_us();
  slots_[known->second].health->answered(false, now);
  publish_availability(known->second, now);
}

void Dispatcher::pause(const Endpoint& endpoint, std::int64_t seconds) {
  const std::lock_guard lock(mutex_);
  if (const auto known = ids_.find(endpoint.name); known != ids_.end())
    slots_[known->second].health->pause(now_us() + std::min(seconds, kPauseMaxS) * 1'000'000);
}

bool Dispatcher::knows(std::string_view model) const {
  const auto view = fleet_.view();
  return view->members.empty() ||
         std::ranges::any_of(view->members, [&](const Member& m) { return serves(*m.endpoint, model); });
}

Result<EndpointId> Dispatcher::add(Endpoint endpoint) {
  const std::lock_guard lock(mutex_);
  return add_locked(std::move(endpoint));
}

Result<EndpointId> Dispatcher::add_locked(Endpoint endpoint) {
  const std::string name = endpoint.name;
  const bool ranked = endpoint.priority != Endpoint().priority || endpoint.weight != Endpoint().weight;
  TRY(const EndpointId id, fleet_.add(std::move(endpoint)));
  ids_[name] = id;
  ranked_ = ranked_ || ranked;
  if (id >= slots_.size()) slots_.resize(id + std::size_t{1});
  slots_[id] = {std::make_unique<EndpointHealth>(options_.probes, options_.breaker),
                fleet_.view()->find(id)->endpoint};
  return id;
}

void Dispatcher::rank(const Endpoint& now) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const Member* member = view->find(now.name);
  if (!member) return;
  Endpoint endpoint = *member->endpoint;
  if (endpoint.priority == now.priority && endpoint.weight == now.weight) return;
  endpoint.priority = now.priority;
  endpoint.weight = now.weight;
  ranked_ = true;
  fleet_.describe(member->id, std::move(endpoint));
}

void Dispatcher::set_ranks(EndpointId id, const Endpoint& worker, int ranks) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const Member* first = view->find(id);
  if (!first || first->endpoint->name != worker.name || worker.rank != 0) return;
  std::vector<bool> known(static_cast<std::size_t>(ranks));
  for (const Member& member : view->members) {
    if (member.id != id && !are_ranks_of_one(*member.endpoint, *first->endpoint)) continue;
    if (member.endpoint->rank >= ranks)
      remove_locked(member.id);
    else
      known[static_cast<std::size_t>(member.endpoint->rank)] = true;
  }
  if (first->endpoint->shares_port != (ranks > 1)) {
    Endpoint now = *first->endpoint;
    now.shares_port = ranks > 1;
    fleet_.describe(id, std::move(now));
    slots_[id].endpoint = fleet_.view()->find(id)->endpoint;
  }
  for (int rank = 1; rank < ranks; ++rank) {
    if (known[static_cast<std::size_t>(rank)]) continue;
    Endpoint endpoint = *first->endpoint;
    endpoint.name = fmt::format("{}@{}", first->endpoint->name, rank);
    endpoint.rank = rank;
    endpoint.shares_port = true;
    endpoint.kv_events_endpoint = rank_endpoint(endpoint.kv_events_endpoint, rank);
    endpoint.kv_replay_endpoint = rank_endpoint(endpoint.kv_replay_endpoint, rank);
    if (const auto added = add_locked(std::move(endpoint)); !added)
      log_warning("rank {} of {} is left out: {}", rank, first->endpoint->url, added.error().message);
  }
}

bool Dispatcher::remove(EndpointId id) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const Member* removed = view->find(id);
  if (!removed) return false;
  for (const Member& member : view->members)
    if (member.id == id || are_ranks_of_one(*member.endpoint, *removed->endpoint)) remove_locked(member.id);
  return true;
}

void Dispatcher::remove_locked(EndpointId id) {
  fleet_.remove(id);
  forget(id);
  std::erase_if(ids_, [id](const auto& each) { return each.second == id; });
  inflight_.forget(id);
  slots_[id].removed = true;
  release_if_idle(id);
}

void Dispatcher::forget(EndpointId id) {
  const std::lock_guard lock(caches_);
  if (id < positions_.size()) positions_[id] = {};
  for (Pool& each : pools_) each.pipeline.forget(id);
}

void Dispatcher::release_if_idle(EndpointId id) {
  if (inflight_.own(id).requests > 0) return;
  if (!ids_.contains(slots_[id].endpoint->name)) metrics_.forget(slots_[id].endpoint->label());
  slots_[id] = {};
  fleet_.release(id);
}

// Null: the id is another endpoint's by now.
Dispatcher::Slot* Dispatcher::slot(EndpointId id, const Endpoint& endpoint) {
  const bool same = id < slots_.size() && slots_[id].health && slots_[id].endpoint->name == endpoint.name;
  return same ? &slots_[id] : nullptr;
}

void Dispatcher::tell_watches(Slot& slot, Trouble trouble) {
  for (const auto& [number, watch] : slot.watches) watch.troubled(trouble);
}

void Dispatcher::probed(EndpointId id, const Endpoint& endpoint, bool success) {
  const std::lock_guard lock(mutex_);
  Slot* const known = slot(id, endpoint);
  if (!known) return;
  known->health->probed(success);
  const std::int64_t now = now_us();
  if (!known->removed) return publish_availability(id, now);
  if (known->health->availability(now) == Availability::unhealthy) tell_watches(*known, Trouble::unhealthy);
}

void Dispatcher::observed(EndpointId id, const Endpoint& endpoint, bool busy) {
  const std::lock_guard lock(mutex_);
  Slot* const known = slot(id, endpoint);
  if (!known) return;
  for (auto& [number, watch] : known->watches) {
    watch.idle_reads = busy ? 0 : watch.idle_reads + 1;
    if (watch.idle_reads < (watch.answered ? kIdleReadsOfStream : kIdleReads)) continue;
    watch.idle_reads = 0;
    watch.troubled(watch.answered ? Trouble::stalled : Trouble::forgotten);
  }
}

void Dispatcher::restarted(EndpointId id, const Endpoint& endpoint, std::int64_t alive_us) {
  const std::lock_guard lock(mutex_);
  Slot* const known = slot(id, endpoint);
  if (!known) return;
  for (const auto& [number, watch] : known->watches)
    if (watch.since_us < alive_us) watch.troubled(Trouble::restarted);
  if (known->removed) return;
  log_info("{} has restarted: its prefixes are forgotten", endpoint.label());
  known->health->restarted();
  for (Pool& each : pools_) each.pipeline.restarted(id);
  publish_availability(id, now_us());
}

void Dispatcher::caches_reset() {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  for (const Member& member : view->members) forget(member.id);
}

std::vector<Member> Dispatcher::leaving() const {
  const std::lock_guard lock(mutex_);
  std::vector<Member> members;
  for (EndpointId id = 0; id < slots_.size(); ++id)
    if (slots_[id].removed && !slots_[id].watches.empty())
      members.push_back({.id = id, .endpoint = slots_[id].endpoint});
  return members;
}

// Under caches_. Null: it is in the fleet no more.
CachePosition* Dispatcher::position_of(const Member& member) {
  const auto view = fleet_.view();
  const Member* now = view->find(member.id);
  if (!now || now->endpoint->name != member.endpoint->name) return nullptr;
  if (member.id >= positions_.size()) positions_.resize(member.id + std::size_t{1});
  return &positions_[member.id];
}

void Dispatcher::cache_changed(const Member& member, std::span<const CacheEvent> events,
                               const CachePosition& position) {
  metrics_.cache_changed(member.endpoint->label(), events.size());
  const std::lock_guard lock(caches_);
  CachePosition* const followed = position_of(member);
  if (!followed) return;
  for (Pool& each : pools_) each.pipeline.cache_changed(member.id, events);
  *followed = position;
}

std::optional<HeldDump> Dispatcher::held(std::string_view endpoint) {
  const std::lock_guard lock(caches_);
  const auto view = fleet_.view();
  const Member* member = view->find(endpoint);
  const CachePosition* followed = member ? position_of(*member) : nullptr;
  if (!followed || followed->next == 0) return std::nullopt;
  for (Pool& each : pools_) {
    const HeldBlocks* blocks = each.pipeline.held_blocks();
    auto dump = blocks ? blocks->dump(member->id) : std::nullopt;
    if (!dump) continue;
    dump->position = *followed;
    return dump;
  }
  return std::nullopt;
}

bool Dispatcher::restore(const Member& member, const HeldDump& dump) {
  const std::lock_guard lock(caches_);
  CachePosition* const followed = position_of(member);
  if (!followed) return false;
  for (Pool& each : pools_)
    if (HeldBlocks* blocks = each.pipeline.held_blocks(); blocks && !blocks->restore(member.id, dump))
      return false;
  *followed = dump.position;
  metrics_.restored(member.endpoint->label(), dump.blocks.size());
  return true;
}

void Dispatcher::publish_availability(EndpointId id, std::int64_t now) {
  const Availability availability = slots_[id].health->availability(now);
  const auto view = fleet_.view();
  const Member* member = view->find(id);
  if (!member || member->state.availability == availability) return;
  log_info("{} is {}", member->endpoint->label(), name(availability));
  const Availability before = member->state.availability;
  if (availability == Availability::available && before != Availability::broken) slots_[id].since_us = now;
  // What a replica held before it was away may be gone: what is learned begins anew.
  if (availability == Availability::unhealthy) {
    forget(id);
    tell_watches(slots_[id], Trouble::unhealthy);
  }
  fleet_.update(id, [&](EndpointState& state) { state.availability = availability; });
}

void Dispatcher::tick() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = now_us();
  for (EndpointId id = 0; id < slots_.size(); ++id)
    if (slots_[id].health && !slots_[id].removed) publish_availability(id, now);
  if (now - expired_us_ < kExpireUs) return;
  expired_us_ = now;
  for (Pool& each : pools_) each.pipeline.expire(now);
}

CircuitBreaker::State Dispatcher::breaker(EndpointId id) const {
  const std::lock_guard lock(mutex_);
  if (id >= slots_.size() || !slots_[id].health) return CircuitBreaker::State::closed;
  return slots_[id].health->breaker().state(now_us());
}

}  // namespace octavo::fleet
