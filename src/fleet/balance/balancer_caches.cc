// The part of Balancer that applies KV cache events and dumps.
#include "base/log.h"
#include "fleet/balance/balancer.h"
#include "fleet/index/held_blocks.h"

namespace octavo::fleet {

// Returns null if the endpoint has left the fleet. The caller must hold caches_.mutex.
CachePosition* Balancer::position_of(const Member& member) {
  const auto view = fleet_.view();
  const Member* now = view->find(member.id);
  if (!now || now->endpoint->name != member.endpoint->name) return nullptr;
  if (member.id >= caches_.positions.size()) caches_.positions.resize(member.id + std::size_t{1});
  return &caches_.positions[member.id];
}

bool Balancer::cache_changed(const Member& member, std::span<const CacheEvent> events,
                             const CachePosition& position) {
  const std::lock_guard lock(caches_.mutex);
  CachePosition* const followed = position_of(member);
  if (!followed) return false;
  for (Pool& each : pools_) each.pipeline.cache_changed(member.id, events);
  check_block_size(member, events);
  *followed = position;
  return true;
}

// Warns once for each endpoint whose block size differs from the index's. The index ignores the blocks of
// such an endpoint.
void Balancer::check_block_size(const Member& member, std::span<const CacheEvent> events) {
  for (const Pool& each : pools_) {
    const HeldBlocks* blocks = each.pipeline.held_blocks();
    const int indexed = blocks ? blocks->read().block_size() : 0;
    const auto other = std::ranges::find_if(events, [&](const CacheEvent& event) {
      return event.kind == CacheEvent::Kind::stored && event.block_size > 0 && event.block_size != indexed;
    });
    if (indexed == 0 || other == events.end() ||
        !caches_.other_block_sizes.insert(member.endpoint->name).second)
      continue;
    log_warning(
        "the KV cache events of {} have blocks of {} tokens, but those of other endpoints have {}, so its "
        "cached blocks are not counted: start all endpoints with the same block size",
        member.endpoint->name, other->block_size, indexed);
  }
}

void Balancer::caches_reset() {
  const std::lock_guard lock(mutex_);
  const auto view = fleet_.view();
  for (const Member& member : view->members) forget(member.id);
}

std::optional<HeldDump> Balancer::held(std::string_view endpoint) {
  const std::lock_guard lock(caches_.mutex);
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

bool Balancer::restore(const Member& member, const HeldDump& dump) {
  const std::lock_guard lock(caches_.mutex);
  CachePosition* const followed = position_of(member);
  if (!followed) return false;
  for (Pool& each : pools_)
    if (HeldBlocks* blocks = each.pipeline.held_blocks(); blocks && !blocks->restore(member.id, dump))
      return false;
  *followed = dump.position;
  return true;
}

std::vector<IndexedPrefixes> Balancer::indexed_prefixes() const {
  const std::lock_guard lock(mutex_);
  std::vector<IndexedPrefixes> all;
  for (const Pool& pool : pools_)
    for (IndexedPrefixes& found : pool.pipeline.indexed_prefixes()) all.push_back(std::move(found));
  return all;
}

}  // namespace octavo::fleet
