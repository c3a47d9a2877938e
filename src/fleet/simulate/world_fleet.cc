// The part of World that adds and removes replicas, and reads their metrics.
#include <fmt/format.h>

#include "base/check.h"
#include "fleet/simulate/world.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kEventsAtOnce = std::size_t{1} << 40;  // no limit

}  // namespace

std::int64_t World::next_change_us() const {
  const std::int64_t size_us = resized_ < options_.sizes.size() ? options_.sizes[resized_].time_us : kNoEvent;
  const std::int64_t ready_us = starting_.empty() ? kNoEvent : starting_.front() + options_.startup_us;
  return std::min({size_us, ready_us, reading_us_});
}

// Applies one change of the number of replicas that is due. Replicas that were decided earlier are started
// first.
Result<> World::change_fleet() {
  if (!starting_.empty() && starting_.front() + options_.startup_us <= now_us_) {
    starting_.pop_front();
    return resize(static_cast<int>(serving_.size()) + 1);
  }
  if (reading_us_ <= now_us_) return read_replicas();
  return resize(options_.sizes[resized_++].replicas);
}

Result<> World::read_replicas() {
  reading_us_ += options_.scaling.interval_us;
  scratch_.readings.clear();
  for (const EndpointId id : serving_) {
    const SchedulerStats stats = replicas_[id].scheduler->stats();
    scratch_.readings.push_back(
        replicas_[id].meter.read(options_.scaling.share, stats.running, stats.waiting));
  }
  const int wanted = options_.scaling.replicas(now_us_, scratch_.readings);
  CHECK(wanted >= 1);
  int existing = static_cast<int>(serving_.size() + starting_.size());
  for (; existing < wanted; ++existing) starting_.push_back(now_us_);
  for (; existing > wanted && !starting_.empty(); --existing) {
    result_.replicas.push_back({.lifetime_us = now_us_ - starting_.back()});
    starting_.pop_back();
  }
  return existing > wanted ? resize(wanted) : Result<>();
}

Result<> World::resize(int replicas) {
  const auto count = static_cast<std::size_t>(replicas);
  while (serving_.size() < count) {
    TRY(const EndpointId id, add_replica(decoding()));
    serving_.push_back(id);
  }
  while (serving_.size() > count) {
    drain(serving_.back());
    serving_.pop_back();
  }
  return {};
}

Result<EndpointId> World::add_replica(const SimulatedPool& pool) {
  TRY(auto scheduler, Scheduler::create(pool.scheduler));
  std::unique_ptr<KvEventLog> events;
  if (options_.kv_events) {
    events = std::make_unique<KvEventLog>(pool.scheduler.num_blocks, pool.scheduler.block_size);
    scheduler->log_to(*events);
  }
  const std::string name = fmt::format("replica-{}:8000", starts_++);
  TRY(const EndpointId id, balancer_->add({.name = name, .url = "http://" + name, .role = pool.part}));
  balancer_->probed(id, *balancer_->view()->find(id)->endpoint, true);
  if (id == replicas_.size()) replicas_.emplace_back();
  const bool slow = pool.part != Role::prefill && serving_.size() < options_.slowdowns.size();
  replicas_[id] = {.role = pool.part,
                   .events = std::move(events),
                   .scheduler = std::move(scheduler),
                   .started_us = now_us_ - options_.startup_us,
                   .slowdown = slow ? options_.slowdowns[serving_.size()] : 1,
                   .use = {.prefills = pool.part == Role::prefill}};
  return id;
}

void World::drain(EndpointId id) {
  CHECK(balancer_->remove(id));
  replicas_[id].draining = true;
  if (!replicas_[id].busy) retire(id);
}

void World::retire(EndpointId id) {
  SimulatedReplica& replica = replicas_[id];
  replica.use.lifetime_us = now_us_ - replica.started_us;
  replica.use.preemptions = replica.scheduler->stats().preemptions;
  result_.replicas.push_back(replica.use);
  replica = {};
}

void World::report_events(EndpointId id) {
  KvEventLog& log = *replicas_[id].events;
  log.flush();
  scratch_.reported.clear();
  log.take(kEventsAtOnce, [&](const KvEvent& event, std::span<const TokenId> tokens) {
    if (event.kind == KvEvent::Kind::cleared) {
      scratch_.reported.push_back({.kind = CacheEvent::Kind::cleared});
      return;
    }
    const bool stored = event.kind == KvEvent::Kind::stored;
    CacheEvent& reported = scratch_.reported.emplace_back(
        CacheEvent{.kind = stored ? CacheEvent::Kind::stored : CacheEvent::Kind::removed,
                   .group = event.group,
                   .blocks = {event.key.low}});
    if (!stored) return;
    if (event.parent_key != Hash128{}) reported.parent = event.parent_key.low;
    reported.tokens.assign(tokens.begin(), tokens.end());
    reported.block_size = pool(replicas_[id].role).scheduler.block_size;
  });
  if (!scratch_.reported.empty())
    balancer_->cache_changed(*balancer_->view()->find(id), scratch_.reported, {});
}

void World::read_gauges() {
  FleetSample sample{.time_us = now_us_,
                     .replicas = static_cast<int>(balancer_->view()->members.size()),
                     .prompt_tokens = prompt_tokens_,
                     .cached_tokens = cached_tokens_};
  balancer_->fleet().update([&](Member& member) {
    const SchedulerStats stats = replicas_[member.id].scheduler->stats();
    EndpointState& state = member.state;
    state.observed_us = now_us_;
    state.waiting = stats.waiting;
    state.running = stats.running;
    state.kv_usage = static_cast<double>(stats.blocks_used) / stats.blocks_total;
    state.block_size = pool(replicas_[member.id].role).scheduler.block_size;
    state.num_blocks = stats.blocks_total;
    return true;
  });
  for (const SimulatedReplica& replica : replicas_) {
    if (!replica.scheduler) continue;
    const SchedulerStats stats = replica.scheduler->stats();
    sample.running += stats.running;
    sample.waiting += stats.waiting;
  }
  result_.samples.push_back(sample);
  balancer_->tick();
}

}  // namespace octavo::fleet
