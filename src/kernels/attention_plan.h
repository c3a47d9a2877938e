// The shape of one step's attention, worked out once on the host and used by every layer.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace octavo {

// The format of one layer's KV cache.
struct KvSpec {
  int kv_heads = 0;
  int head_dim = 0;           // width of keys, and of values unless in the keys; a multiple of 8
  int block_size = 16;        // tokens; a multiple of 16
  DType dtype = DType::bf16;  // f32, f16, bf16, f8_e4m3, or i8 with scales (kv_quant.h)
  // > 0: a token's values are the first values_in_keys numbers of its keys, and have no separate memory
  // (latent attention).
  int values_in_keys = 0;
  // Number of elements at the end of a key that belong to an indexer (ChooseTokensArgs); scores do not use
  // them. Requires values_in_keys.
  int index_dim = 0;
  // Tokens per cache entry; a block holds block_size / rate entries (CompressArgs).
  int rate = 1;

  int entries() const { return block_size / rate; }  // per block
  // If true, keys are also the values, unchanged. The cache has one head, and its rows are contiguous in
  // every backend.
  bool shared_rows() const { return values_in_keys > 0 && values_in_keys == score_dim(); }
  int score_dim() const { return head_dim - index_dim; }
  int value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
  bool operator==(const KvSpec&) const = default;
};

// One layer's part of the KV cache: `blocks` blocks of block_bytes(spec), `stride_bytes` apart. Only the
// backend knows the layout inside a block.
struct KvLayer {
  std::byte* data = nullptr;
  std::int64_t blocks = 0;
  std::int64_t stride_bytes = 0;
  KvSpec spec;
};

// The sequences of a step, flat, in host memory. The queries of sequence s are [query_starts[s],
// query_starts[s + 1]). They are the last of its first lengths[s] tokens (any tokens if attention is neither
// causal nor windowed). Token t is in block block_tables[s * table_stride + t / block_size]. Blocks before a
// sliding window are never read and may hold any value.
struct AttentionShape {
  std::span<const std::int32_t> query_starts;  // sequences + 1
  std::span<const std::int32_t> lengths;       // sequences; tokens with KV after this step's are stored
  std::span<const std::int32_t> block_tables;
  std::int64_t table_stride = 0;
  // For recorded steps (Stream::record): every sequence has one query or none, and sequences without a query
  // come last. The launches then depend only on the number of sequences.
  bool recorded = false;
};

// Maximum sizes that a plan must support.
struct AttentionLimits {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_length = 0;
  int q_heads = 0;
  KvSpec kv;
  // > 0: every layer that reads the plan has this window, and the plan omits tokens before it. 0: any window.
  int window = 0;
  bool causal = true;  // for every layer that uses the plan
};

// Backend-defined; made once (make_attention_plan), filled every step (plan_attention), read by every layer.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
};

}  // namespace octavo
