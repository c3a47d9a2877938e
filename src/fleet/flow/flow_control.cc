#include "fleet/flow/flow_control.h"

#include <algorithm>

#include "base/check.h"

namespace octavo::fleet {

std::string_view name(FlowOutcome outcome) {
  switch (outcome) {
    case FlowOutcome::dispatched:
      return "Dispatched";
    case FlowOutcome::rejected_capacity:
      return "RejectedCapacity";
    case FlowOutcome::rejected_no_endpoints:
      return "RejectedNoEndpoints";
    case FlowOutcome::evicted_ttl:
      return "EvictedTTL";
    case FlowOutcome::evicted_no_endpoints:
      return "EvictedNoEndpoints";
    case FlowOutcome::evicted_context_cancelled:
      return "EvictedContextCancelled";
    case FlowOutcome::evicted_other:
      return "EvictedOther";
  }
  return "";
}

FlowControl::Band& FlowControl::band(int priority) {
  const auto found = bands_.find(priority);
  if (found != bands_.end()) return found->second;
  const auto own = options_.bands.find(priority);
  const BandOptions& options = own != options_.bands.end() ? own->second
                               : priority < 0              ? options_.default_negative_band
                                                           : options_.default_band;
  return bands_.emplace(priority, Band{.options = options, .fairness = options.fairness->make(), .flows = {}})
      .first->second;
}

std::optional<FlowOutcome> FlowControl::enqueue(FlowItem item, bool pool_empty) {
  CHECK(!waiting_.contains(item.id), "it waits already");
  Band& its = band(item.priority);
  const auto full = [](std::uint64_t waiting_now, std::uint64_t more, std::uint64_t most) {
    return most > 0 && (more > most || waiting_now > most - more);
  };
  if (full(its.bytes, item.bytes, its.options.bytes_max) || full(its.requests, 1, its.options.requests_max) ||
      full(bytes_, item.bytes, options_.bytes_max) || full(waiting_.size(), 1, options_.requests_max))
    return pool_empty ? FlowOutcome::rejected_no_endpoints : FlowOutcome::rejected_capacity;
  const std::int64_t ttl_us = its.options.ttl_us.value_or(options_.ttl_us);
  const Order order{its.options.ordering->key(item, ttl_us), ++arrived_};
  its.bytes += item.bytes;
  ++its.requests;
  bytes_ += item.bytes;
  arrivals_[ttl_us].emplace(item.arrived_us, item.id);
  waiting_.emplace(item.id, Waiting{item.priority, item.fairness_id, order, item.arrived_us, ttl_us});
  its.flows[item.fairness_id].emplace(order, std::move(item));
  return std::nullopt;
}

std::optional<FlowItem> FlowControl::next(double saturation, std::int64_t now_us) {
  ceilings_.assign(bands_.size(), 1);
  priorities_.clear();
  for (const auto& [priority, band] : bands_) priorities_.push_back(priority);
  options_.usage_limit->limit(saturation, priorities_, ceilings_);
  auto ceiling = ceilings_.begin();
  for (auto& [priority, band] : bands_) {
    if (saturation >= *ceiling++) return std::nullopt;
    if (band.requests == 0) continue;
    heads_.clear();
    for (const auto& [flow, queue] : band.flows)
      heads_.push_back({flow, queue.begin()->first, queue.begin()->second.arrived_us});
    const FlowHead& picked = heads_[band.fairness->pick(heads_, now_us)];
    return take(band.flows.find(picked.flow)->second.begin()->second.id);
  }
  return std::nullopt;
}

std::vector<BlockedBand> FlowControl::blocked(double saturation) const {
  std::vector<BlockedBand> blocked;
  auto ceiling = ceilings_.begin();
  for (const auto& [priority, band] : bands_) {
    if (ceiling == ceilings_.end()) break;
    if (band.requests > 0 && saturation >= *ceiling) blocked.push_back({priority, *ceiling});
    ++ceiling;
  }
  return blocked;
}

void FlowControl::ended(std::string_view fairness_id, std::int64_t input_tokens, std::int64_t output_tokens,
                        std::int64_t now_us) {
  std::set<FairnessPolicy*> counted;  // several bands may share a policy, which must count the request once
  for (const auto& [priority, band] : bands_)
    if (counted.insert(band.options.fairness.get()).second)
      band.options.fairness->ended(fairness_id, input_tokens, output_tokens, now_us);
}

FlowItem FlowControl::take(std::uint64_t id) {
  const Waiting entry = std::move(waiting_.extract(id).mapped());
  Band& band = bands_.at(entry.priority);
  const auto flow = band.flows.find(entry.flow);
  FlowItem item = std::move(flow->second.extract(entry.order).mapped());
  if (flow->second.empty()) band.flows.erase(flow);
  --band.requests;
  band.bytes -= item.bytes;
  bytes_ -= item.bytes;
  const auto alike = arrivals_.find(entry.ttl_us);
  alike->second.erase({entry.arrived_us, id});
  if (alike->second.empty()) arrivals_.erase(alike);
  return item;
}

std::vector<FlowControl::Ended> FlowControl::expire(std::int64_t now_us, bool pool_empty) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> late;
  for (const auto& [own_ttl, arrivals] : arrivals_) {
    const std::int64_t ttl = pool_empty ? options_.no_endpoint_ttl_us.value_or(own_ttl) : own_ttl;
    if (ttl == 0) continue;
    for (auto at = arrivals.begin(); at != arrivals.end() && now_us - at->first >= ttl; ++at)
      late.push_back(*at);
  }
  std::ranges::sort(late);
  std::vector<Ended> ended;
  for (const auto& [arrived_us, id] : late)
    ended.push_back({take(id), pool_empty ? FlowOutcome::evicted_no_endpoints : FlowOutcome::evicted_ttl});
  return ended;
}

std::optional<FlowControl::Ended> FlowControl::cancel(std::uint64_t id) {
  if (!waiting_.contains(id)) return std::nullopt;
  return Ended{take(id), FlowOutcome::evicted_context_cancelled};
}

std::vector<FlowControl::Ended> FlowControl::drain() {
  std::vector<Ended> ended;
  while (!arrivals_.empty())
    ended.push_back({take(arrivals_.begin()->second.begin()->second), FlowOutcome::evicted_other});
  return ended;
}

std::vector<FlowControl::BandLoad> FlowControl::loads() const {
  std::vector<BandLoad> loads;
  for (const auto& [priority, band] : bands_) loads.push_back({priority, band.requests, band.bytes});
  return loads;
}

}  // namespace octavo::fleet
