// Encodes KV cache events in vLLM's wire format, the msgpack of KVEventBatch
// (vllm/distributed/kv_events.py):
//
//   [seconds since 1970, [event, ...], rank]
//   {"type": "BlockStored", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
//    "medium", "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"}
//   {"type": "BlockRemoved", "block_hashes", "medium", "group_idx"}
//   {"type": "AllBlocksCleared"}
//
// A block hash is the low 64 bits of BlockContent::key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kv/events.h"

namespace octavo {

// Inputs of a request, besides its tokens, that determine the KV of its blocks. Events report them as in
// vLLM.
struct KvContentNames {
  std::string adapter;
  std::string salt;  // cache_salt; empty: no salt
};

class KvEventBatch {
 public:
  // `windows` has the sliding window of each cache group in tokens; 0 means full attention.
  KvEventBatch(int block_size, std::vector<int> windows)
      : block_size_(block_size), windows_(std::move(windows)) {}

  // `names` are the names for event.extra. If it is null, the event reports the hash itself.
  void add(const KvEvent& event, std::span<const std::int32_t> tokens, const KvContentNames* names = nullptr);
  bool empty() const { return count_ == 0; }

  // Returns the encoded batch, and starts an empty batch.
  std::string finish(double seconds, int rank);

 private:
  void number(std::uint64_t value);
  void text(std::string_view value);
  void nil();
  void map(std::uint32_t fields);
  void array(std::uint32_t items);
  void stored(const KvEvent& event, std::span<const std::int32_t> tokens, const KvContentNames* names);
  void extra_keys(const KvEvent& event, const KvContentNames* names);
  void removed(const KvEvent& event);

  int block_size_;
  std::vector<int> windows_;
  std::uint32_t count_ = 0;
  std::string events_;
};

}  // namespace octavo
