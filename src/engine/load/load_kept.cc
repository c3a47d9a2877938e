#include "engine/load/load_kept.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/host_memory.h"
#include "base/log.h"

namespace octavo {
namespace {

constexpr int kSizeTolerance = 10;  // tolerance: 1/kSizeTolerance of the planned number of blocks

// Returns the reason why blocks cannot be kept, or an empty text.
std::string_view obstacle(const EngineOptions& options, const ModelPlanFigures& figures,
                          const Backend& backend) {
  if (!backend.device->shares_host_memory()) return "the KV cache is in the memory of a GPU";
  if (options.parallel.rank_layout().size() > 1 || options.parallel.shares_experts())
    return "the model has several ranks";
  if (!options.cache.enable_prefix_caching || (figures.pools && !figures.caches_prefixes))
    return "prefixes are not cached";
  return "";
}

// Returns a hash of everything, except the tokens, that determines the bytes of a block.
Hash128 identity_of(const EngineOptions& options, const LoadedModel& loaded, const Backend& backend) {
  const ModelPlanFigures& figures = loaded.figures;
  std::string text = fmt::format("{:016x}{:016x}|{}|{}|{}|{}|{}", loaded.content.high, loaded.content.low,
                                 backend.name, figures.block_bytes, figures.state_bytes, options.cache.dtype,
                                 static_cast<int>(options.cache.prefix_hash));
  for (const LayerGroup& group : figures.layout.groups)
    text += fmt::format("|{},{},{}", group.window, group.layers, name(group.kv.dtype));
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(text)), 0);
}

}  // namespace

KeptPlan::KeptPlan(int descriptor, const EngineOptions& options, const LoadedModel& loaded,
                   const Backend& backend) {
  if (descriptor < 0) return;
  if (const std::string_view why = obstacle(options, loaded.figures, backend); !why.empty()) {
    if (!options.cache.memory_file.empty()) log_warning("--kv-memory-file is not used: {}", why);
    close(descriptor);
    return;
  }
  descriptor_ = descriptor;
  shape_ = {.blocks = {.block_size = loaded.figures.layout.block_size,
                       .identity = identity_of(options, loaded, backend)},
            .block_bytes = static_cast<std::size_t>(loaded.figures.block_bytes),
            .state_bytes = static_cast<std::size_t>(loaded.figures.state_bytes)};
}

std::int64_t KeptPlan::occupied_bytes() const {
  return descriptor_ < 0 ? 0 : static_cast<std::int64_t>(SharedMemory::allocated(descriptor_));
}

SchedulerOptions KeptPlan::keep_size(SchedulerOptions planned, const ModelPlanFigures& figures,
                                     const MemoryFigures& memory, const EngineOptions& options) const {
  if (descriptor_ < 0 || options.cache.num_blocks || options.cache.memory_bytes != 0) return planned;
  const std::optional<int> kept = KeptCache::blocks_of(descriptor_, shape_.blocks);
  if (!kept || std::abs(*kept - planned.num_blocks) > planned.num_blocks / kSizeTolerance) return planned;
  EngineOptions sized = options;
  sized.cache.num_blocks = kept;
  auto same = plan_engine(figures, memory, sized);
  return same && same->max_model_len == planned.max_model_len ? *std::move(same) : std::move(planned);
}

Result<KeptCache::Opened> KeptPlan::open(SchedulerOptions& scheduler, int state_slots) const {
  if (descriptor_ < 0) return KeptCache::Opened{};
  KeptShape shape = shape_;
  shape.blocks.num_blocks = scheduler.num_blocks;
  shape.saved_states = scheduler.saved_states;
  shape.state_slots = state_slots;
  // Asks for no more memory than the machine has; the failure would otherwise appear later, when the memory
  // is used.
  if (const std::uint64_t all = host_memory().all(); all > 0 && KeptCache::bytes(shape) > all)
    return KeptCache::Opened{};
  auto mapped = KeptCache::open(descriptor_, shape);
  if (!mapped)
    return field_failure("kv_memory_file", mapped.error().code, "{} KV blocks of {} bytes: {}",
                         shape.blocks.num_blocks, shape.block_bytes, mapped.error().message);
  KeptCache::Opened opened = *std::move(mapped);
  scheduler.prefix_hash.seed = opened.cache->hash_seed();
  return opened;
}

}  // namespace octavo
