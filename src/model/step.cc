#include "model/step.h"

#include <algorithm>

#include "model/cache_layout.h"

namespace octavo {
namespace {

LayerCache cache_of(const GroupBatch& group, StepRows rows) {
  return {.plan = group.plan, .slots = group.slots ? group.slots.rows(rows.first, rows.count) : View{}};
}

}  // namespace

LayerMemory layer_memory(const CacheLayout& layout, std::size_t layer, std::int64_t state_floats,
                         const ForwardBatch& batch, std::span<const KvLayer> cache, StepRows rows) {
  const CacheLayer& cached = layout.layers[layer];
  LayerMemory memory{
      .cross_plan = batch.cross.plan,
      .state_plan = {batch.states.slots, batch.states.starts, batch.positions, batch.states.copies}};
  if (!batch.groups.empty()) {
    memory.group = static_cast<std::size_t>(std::max(0, cached.group));
    memory.cache = cache_of(batch.groups[memory.group], rows);
  }
  if (cached.group >= 0) memory.cache.memory = cache[layer];
  if (cached.entries >= 0) {
    const auto entries = static_cast<std::size_t>(cached.entries);
    memory.entries = cache_of(batch.groups[static_cast<std::size_t>(layout.layers[entries].group)], rows);
    memory.entries.memory = cache[entries];
  }
  if (cached.earlier >= 0) {
    const auto earlier = static_cast<std::size_t>(cached.earlier);
    memory.earlier = {.memory = cache[earlier],
                      .plan = batch.groups[static_cast<std::size_t>(layout.layers[earlier].group)].plan};
  }
  if (cached.state >= 0) memory.states = batch.states.memory.columns(cached.state, state_floats);
  if (!batch.cross.cache.empty()) memory.cross = batch.cross.cache[layer];
  return memory;
}

}  // namespace octavo
