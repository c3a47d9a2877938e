// Description of one step's attention. The host computes it once; every layer uses it.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace octavo {

// Format of one layer's KV cache.
struct KvSpec {
  int kv_heads = 0;
  int head_dim = 0;           // width of keys, and of values unless values_in_keys > 0; a multiple of 8
  int block_size = 16;        // number of tokens; a multiple of 16
  DType dtype = DType::bf16;  // f32, f16, bf16, f8_e4m3, or i8 with scales (kv_quant.h)
  // If > 0: the values of a token are the first values_in_keys elements of its keys and are not stored
  // separately (latent attention).
  int values_in_keys = 0;
  // Number of elements at the end of each key that only the indexer reads (ChooseTokensArgs); attention
  // ignores them. Requires values_in_keys > 0.
  int index_dim = 0;
  // Tokens per cache entry; a block holds block_size / rate entries (CompressArgs).
  int rate = 1;

  int entries() const { return block_size / rate; }  // number of cache entries in a block
  // Returns true if values are identical to keys, apart from the index_dim elements. Such a cache has one KV
  // head, and its rows are contiguous in every backend.
  bool shared_rows() const { return values_in_keys > 0 && values_in_keys == score_dim(); }
  int score_dim() const { return head_dim - index_dim; }
  int value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
  bool operator==(const KvSpec&) const = default;
};

// KV cache of one layer: `blocks` blocks of block_bytes(spec) bytes, `stride_bytes` bytes apart. The layout
// inside a block depends on the backend.
struct KvLayer {
  std::byte* data = nullptr;
  std::int64_t blocks = 0;
  std::int64_t stride_bytes = 0;
  KvSpec spec;
};

// The sequences of a step, in host memory. Sequence s has the queries [query_starts[s], query_starts[s + 1]),
// which belong to the last of its lengths[s] tokens. Without causal or windowed attention, queries may belong
// to any tokens. Token t is in block block_tables[s * table_stride + t / block_size]. Blocks before a sliding
// window are never read; their table entries may have any value.
struct AttentionShape {
  std::span<const std::int32_t> query_starts;  // [sequences + 1]
  std::span<const std::int32_t> lengths;       // [sequences]: number of tokens with KV, including those of
                                               // this step
  std::span<const std::int32_t> block_tables;
  std::int64_t table_stride = 0;
  // True for recorded steps (Stream::record): each sequence has at most one query, and sequences without a
  // query come last. Kernel launches then depend only on the number of sequences.
  bool recorded = false;
};

struct AttentionLimits {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_length = 0;
  int q_heads = 0;
  KvSpec kv;
  // Sliding window in tokens, if all layers that use the plan have the same one: the plan then omits tokens
  // before the window. 0: windows may differ by layer.
  int window = 0;
  bool causal = true;  // whether attention is causal in every layer that uses the plan
};

// Work division of one step's attention. make_attention_plan creates it once, plan_attention fills it in
// every step, and every layer reads it.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
};

}  // namespace octavo
