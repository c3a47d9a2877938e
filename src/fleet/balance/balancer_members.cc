// The part of Balancer that adds and removes endpoints, tracks their health, and receives the load of
// peers.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/rank_endpoint.h"
#include "fleet/balance/balancer.h"
#include "fleet/decide/eligible.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kExpireUs = 1'000'000;
constexpr int kIdleReads = 4;  // readings without running requests after which a request counts as lost
// Number of readings without running requests after which a stream that has sent its first byte counts as
// lost. It is larger than kIdleReads because the stream's last bytes may arrive late.
constexpr int kIdleReadsOfStream = 30;
// factor for Watch::silence_us after the first byte of a stream
constexpr int kSilencesOfStream = 3;
// After this time without a reading, an endpoint counts as one that reports no load.
constexpr std::int64_t kBlindUs = 60'000'000;
// source of endpoints that were added because the metrics show several ranks
constexpr std::string_view kFromMetrics = "@metrics";

std::string_view name(Availability availability) {
  switch (availability) {
    case Availability::available:
      return "available";
    case Availability::unprobed:
      return "new";
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

bool is_ranked(const Endpoint& endpoint) {
  return endpoint.priority != Endpoint().priority || endpoint.weight != Endpoint().weight;
}

}  // namespace

void log_availability(const Endpoint& endpoint, Availability now) {
  log_info("{} is {}", endpoint.label(), name(now));
}

bool Balancer::knows(std::string_view model) const {
  const auto view = fleet_.view();
  return view->members.empty() ||
         std::ranges::any_of(view->members, [&](const Member& m) { return serves(*m.endpoint, model); });
}

Result<EndpointId> Balancer::add(Endpoint endpoint) {
  const std::lock_guard lock(mutex_);
  return add_locked(std::move(endpoint), {});
}

Result<EndpointId> Balancer::put(Endpoint endpoint) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const Member* known = view->find(endpoint.name);
  if (!known) return add_locked(std::move(endpoint), {});
  endpoint.labels.insert(known->endpoint->labels.begin(), known->endpoint->labels.end());
  if (slots_[known->id].source.empty()) update_listed(*known, std::move(endpoint));
  return known->id;
}

Result<EndpointId> Balancer::add_locked(Endpoint endpoint, const std::string& source) {
  const std::string name = endpoint.name;
  const bool ranked = is_ranked(endpoint);
  const int ranks = endpoint.ranks;
  TRY(const EndpointId id, fleet_.add(std::move(endpoint)));
  ids_[name] = id;
  ranked_ = ranked_ || ranked;
  if (id >= slots_.size()) slots_.resize(id + std::size_t{1});
  slots_[id] = {.health = std::make_unique<EndpointHealth>(options_.probes, options_.breaker),
                .endpoint = fleet_.view()->find(id)->endpoint,
                .source = source};
  if (ranks > 1) set_ranks_locked(id, *slots_[id].endpoint, ranks);
  return id;
}

void Balancer::set_endpoints(std::vector<Endpoint> endpoints, const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto before = fleet_.view();
  for (const Member& member : before->members) {
    if (slots_[member.id].source != source || slots_[member.id].removed ||
        std::ranges::find(endpoints, member.endpoint->name, &Endpoint::name) != endpoints.end())
      continue;
    log_info("endpoint removed: {}", member.endpoint->name);
    remove_ranks(*before, member);
  }
  for (Endpoint& endpoint : endpoints) {
    const Member* known = before->find(endpoint.name);
    if (known && slots_[known->id].source == source) {
      update_listed(*known, std::move(endpoint));
      continue;
    }
    const std::string name = endpoint.name;
    if (const auto added = add_locked(std::move(endpoint), source))
      log_info("endpoint added: {}", name);
    else
      log_warning("ignored the endpoint {}: {}", name, added.error().message);
  }
}

void Balancer::update_listed(const Member& known, Endpoint listed) {
  if (listed.models.empty()) listed.models = known.endpoint->models;
  if (listed.adapters.empty()) listed.adapters = known.endpoint->adapters;
  if (known.endpoint->rank == 0) listed.shares_port = listed.shares_port || known.endpoint->shares_port;
  if (listed != *known.endpoint) describe(known.id, std::move(listed));
}

void Balancer::describe(EndpointId id, Endpoint endpoint) {
  ranked_ = ranked_ || is_ranked(endpoint);
  fleet_.describe(id, std::move(endpoint));
  slots_[id].endpoint = fleet_.view()->find(id)->endpoint;
}

void Balancer::set_models(const Member& member, std::optional<std::vector<std::string>> models,
                          std::vector<std::string> adapters) {
  const std::lock_guard lock(mutex_);
  const Slot* known = slot(member.id, *member.endpoint);
  if (!known || known->removed) return;
  Endpoint endpoint = *known->endpoint;
  if (models) endpoint.models = *std::move(models);
  endpoint.adapters = std::move(adapters);
  if (endpoint != *known->endpoint) describe(member.id, std::move(endpoint));
}

void Balancer::set_ranks(EndpointId id, const Endpoint& worker, int ranks) {
  const std::lock_guard lock(mutex_);
  set_ranks_locked(id, worker, ranks);
}

void Balancer::set_ranks_locked(EndpointId id, const Endpoint& worker, int ranks) {
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
    describe(id, std::move(now));
  }
  for (int rank = 1; rank < ranks; ++rank) {
    if (known[static_cast<std::size_t>(rank)]) continue;
    Endpoint endpoint = *first->endpoint;
    endpoint.ranks = 0;
    endpoint.name = fmt::format("{}@{}", first->endpoint->name, rank);
    endpoint.rank = rank;
    endpoint.shares_port = true;
    endpoint.kv_events_endpoint = rank_endpoint(endpoint.kv_events_endpoint, rank);
    endpoint.kv_replay_endpoint = rank_endpoint(endpoint.kv_replay_endpoint, rank);
    if (const auto added = add_locked(std::move(endpoint), std::string(kFromMetrics)); !added)
      log_warning("ignored rank {} of {}: {}", rank, first->endpoint->url, added.error().message);
  }
}

bool Balancer::remove(EndpointId id) {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  const Member* removed = view->find(id);
  if (!removed) return false;
  remove_ranks(*view, *removed);
  return true;
}

void Balancer::remove_ranks(const FleetView& view, const Member& removed) {
  for (const Member& member : view.members)
    if (member.id == removed.id || are_ranks_of_one(*member.endpoint, *removed.endpoint))
      remove_locked(member.id);
}

void Balancer::remove_locked(EndpointId id) {
  if (!fleet_.remove(id)) return;
  forget(id);
  std::erase_if(ids_, [id](const auto& each) { return each.second == id; });
  inflight_.forget(id);
  slots_[id].removed = true;
  release_if_idle(id);
}

void Balancer::forget(EndpointId id) {
  const std::lock_guard lock(caches_.mutex);
  if (id < caches_.positions.size()) caches_.positions[id] = {};
  for (Pool& each : pools_) each.pipeline.forget(id);
}

void Balancer::release_if_idle(EndpointId id) {
  if (inflight_.own(id).requests > 0) return;
  if (!ids_.contains(slots_[id].endpoint->name)) options_.released(*slots_[id].endpoint);
  slots_[id] = {};
  pace_.forget(id);
  fleet_.release(id);
}

std::vector<Member> Balancer::leaving() const {
  const std::lock_guard lock(mutex_);
  std::vector<Member> members;
  for (EndpointId id = 0; id < slots_.size(); ++id)
    if (slots_[id].removed && !slots_[id].watches.empty())
      members.push_back({.id = id, .endpoint = slots_[id].endpoint});
  return members;
}

// Returns null if a different endpoint now has the id.
Balancer::Slot* Balancer::slot(EndpointId id, const Endpoint& endpoint) {
  const bool same = id < slots_.size() && slots_[id].health && slots_[id].endpoint->name == endpoint.name;
  return same ? &slots_[id] : nullptr;
}

void Balancer::notify_watches(Slot& slot, Trouble trouble) {
  for (const auto& [number, watch] : slot.watches) watch.troubled(trouble);
}

void Balancer::probed(EndpointId id, const Endpoint& endpoint, bool success) {
  const std::lock_guard lock(mutex_);
  Slot* const known = slot(id, endpoint);
  if (!known) return;
  known->health->probed(success);
  const std::int64_t now = options_.clock();
  if (!known->removed) return publish_availability(id, now);
  if (known->health->availability(now) == Availability::unhealthy) notify_watches(*known, Trouble::unhealthy);
}

// Reports trouble for requests whose endpoint has shown no running requests in several consecutive
// readings.
void Balancer::count_idle(const Scrape& scrape) {
  Slot& known = slots_[scrape.endpoint];
  const bool busy = scrape.state->running + scrape.state->waiting > 0;
  for (auto& [number, watch] : known.watches) {
    watch.idle_reads = busy ? 0 : watch.idle_reads + 1;
    if (watch.idle_reads < (watch.answered ? kIdleReadsOfStream : kIdleReads)) continue;
    watch.idle_reads = 0;
    watch.troubled(watch.answered ? Trouble::stalled : Trouble::forgotten);
  }
}

// Reports trouble for requests that have received no bytes for too long, at endpoints that report no load.
void Balancer::count_silence(std::int64_t now) {
  const auto view = fleet_.view();
  for (const Member& member : view->members) {
    const std::int64_t observed_us = member.state.observed_us;
    if (observed_us != kNeverObserved && now - observed_us < kBlindUs) continue;
    for (auto& [number, watch] : slots_[member.id].watches) {
      const std::int64_t silence_us = watch.silence_us * (watch.answered ? kSilencesOfStream : 1);
      if (silence_us == 0 || now - watch.active_us < silence_us) continue;
      watch.active_us = now;
      watch.troubled(watch.answered ? Trouble::stalled : Trouble::forgotten);
    }
  }
}

std::vector<EndpointId> Balancer::scraped(std::vector<Scrape> scrapes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(scrapes, [&](const Scrape& scrape) {
    const bool known = scrape.endpoint < slots_.size() && slots_[scrape.endpoint].health;
    return !known || (!scrape.name.empty() && slots_[scrape.endpoint].endpoint->name != scrape.name);
  });
  for (const Scrape& scrape : scrapes)
    if (scrape.state) count_idle(scrape);
  std::vector<EndpointId> restarted;
  fleet_.update([&](Member& member) {
    bool changed = false;
    for (Scrape& scrape : scrapes)
      if (scrape.endpoint == member.id) changed |= take(scrape, member, restarted);
    return changed;
  });
  return restarted;
}

bool Balancer::take(Scrape& scrape, Member& member, std::vector<EndpointId>& restarted) {
  EndpointState& state = member.state;
  bool changed = scrape.state.has_value();
  if (scrape.state) {
    if (has_restarted(state, *scrape.state)) {
      restart(member, *scrape.state);
      restarted.push_back(member.id);
    }
    if (scrape.state->attributes)
      scrape.attributes.insert(scrape.state->attributes->begin(), scrape.state->attributes->end());
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
  EndpointHealth& health = *slots_[member.id].health;
  health.probed(*scrape.answered);
  const Availability before = state.availability;
  take_availability(member, health.availability(options_.clock()));
  return changed || state.availability != before;
}

// Several processes may answer at one address in turn, each with separate metrics. So requests are reported
// as lost only if the new start time is later than the previous one.
void Balancer::restart(Member& member, const EndpointState& now) {
  log_info("{} has restarted: the router forgets its cached prefixes", member.endpoint->label());
  Slot& known = slots_[member.id];
  const bool replaced = now.started_s > member.state.started_s;
  for (const auto& [number, watch] : known.watches)
    if (replaced && watch.since_us < member.state.observed_us) watch.troubled(Trouble::restarted);
  known.health->restarted();
  known.capacity.forget();
  pace_.forget(member.id);
  for (Pool& each : pools_) each.pipeline.restarted(member.id);
  take_availability(member, known.health->availability(options_.clock()));
}

void Balancer::publish_availability(EndpointId id, std::int64_t now) {
  const Availability availability = slots_[id].health->availability(now);
  const auto view = fleet_.view();
  if (const Member* member = view->find(id); !member || member->state.availability == availability) return;
  fleet_.update([&](Member& member) {
    if (member.id != id) return false;
    take_availability(member, availability);
    return true;
  });
}

void Balancer::take_availability(Member& member, Availability now) {
  const Availability before = std::exchange(member.state.availability, now);
  if (before == now) return;
  options_.availability_changed(*member.endpoint, now);
  if (now == Availability::available && before != Availability::broken)
    slots_[member.id].since_us = options_.clock();
  if (now != Availability::unhealthy) return;
  forget(member.id);  // the cache may be empty when the endpoint is available again
  notify_watches(slots_[member.id], Trouble::unhealthy);
}

void Balancer::tick() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = options_.clock();
  for (EndpointId id = 0; id < slots_.size(); ++id)
    if (slots_[id].health && !slots_[id].removed) publish_availability(id, now);
  if (now - expired_us_ < kExpireUs) return;
  expired_us_ = now;
  count_silence(now);
  for (Pool& each : pools_) each.pipeline.expire(now);
}

void Balancer::finished(std::string_view routing_key) {
  const std::lock_guard lock(mutex_);
  for (Pool& each : pools_) each.pipeline.finished(routing_key);
}

CircuitBreaker::State Balancer::breaker(EndpointId id) const {
  const std::lock_guard lock(mutex_);
  if (id >= slots_.size() || !slots_[id].health) return CircuitBreaker::State::closed;
  return slots_[id].health->breaker().state(options_.clock());
}

void Balancer::watch_loads(std::function<void()> changed) {
  const std::lock_guard lock(mutex_);
  loads_changed_ = std::move(changed);
}

// Reports the change to peer routers. Not called for the growth by output tokens, which the next report
// includes.
void Balancer::load_changed(EndpointId id) {
  slots_[id].load_changed = true;
  if (loads_changed_ && std::exchange(loads_are_reported_, false)) loads_changed_();
}

std::vector<WorkerLoad> Balancer::changed_loads(bool all) {
  const std::lock_guard lock(mutex_);
  loads_are_reported_ = true;
  std::vector<WorkerLoad> loads;
  const auto view = fleet_.view();
  for (const Member& member : view->members) {
    const Load load = inflight_.own(member.id);
    const bool changed = std::exchange(slots_[member.id].load_changed, false);
    if (all ? load != Load{} : changed) loads.push_back({member.endpoint->name, load});
  }
  return loads;
}

void Balancer::peer_reported(const LoadMessage& message) {
  const std::lock_guard lock(mutex_);
  if (message.all) inflight_.forget_peer(message.sender);
  for (const auto& [worker, load] : message.workers)
    if (const auto known = ids_.find(worker); known != ids_.end())
      inflight_.peer_has(message.sender, known->second, load);
}

void Balancer::peer_removed(PeerId peer) {
  const std::lock_guard lock(mutex_);
  inflight_.forget_peer(peer);
}

Load Balancer::load(EndpointId id) const {
  const std::lock_guard lock(mutex_);
  return inflight_.own(id);
}

Load Balancer::load_of_peers(EndpointId id) const {
  const std::lock_guard lock(mutex_);
  return inflight_.of_peers(id);
}

}  // namespace octavo::fleet
