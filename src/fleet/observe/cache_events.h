// Parses the KV cache events of vLLM and SGLang: the msgpack type KVEventBatch of
// vllm/distributed/kv_events.py. Older versions send arrays, newer versions send maps.
//
//   [seconds, [event, ...], rank] or {"ts", "events", "data_parallel_rank"}
//   ["BlockStored", block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name,
//    extra_keys, group_idx, kv_cache_spec_kind, kv_cache_spec_sliding_window]
//   ["BlockRemoved", block_hashes, medium, group_idx]
//   ["AllBlocksCleared"]
//
// In newer versions an event is a map with the names above and "type". Trailing fields may be missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/index/cache_event.h"

namespace octavo::fleet {

struct CacheBatch {
  std::vector<CacheEvent> events = {};
  std::optional<std::int64_t> rank = {};  // data-parallel rank of the engine; nullopt: not reported
};

// Parses a batch. Ignores event types and fields that it does not know. Returns an error if the batch is
// corrupt.
Result<CacheBatch> read_cache_batch(std::string_view batch);

}  // namespace octavo::fleet
