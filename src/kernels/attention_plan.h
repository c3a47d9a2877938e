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
  // > 0: a token's values are the first values_in_keys numbers of its keys, and are not stored separately
  // (latent attention).
  int values_in_keys = 0;
  // Number of elements at the end of a key that only an indexer uses (ChooseTokensArgs); attention ignores
  // them. Requires values_in_keys.
  int index_dim = 0;
  // Tokens per cache entry; a block holds block_size / rate entries (CompressArgs).
  int rate = 1;

  int entries() const { return block_size / rate; }  // number of cache entries in a block
  // True: the values are the whole keys, without the indexer's part. The cache has one head, and its rows are
  // contiguous in every backend.
  bool shared_rows() const { return values_in_keys > 0 && values_in_keys == score_dim(); }
  int score_dim() const { return head_dim - index_dim; }
  int value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
  bool operator==(const KvSpec&) const = default;
};

// One layer's part of the KV cache: `blocks` blocks of block_bytes(spec), at a distance of `stride_bytes`.
// Only the backend knows the layout inside a block.
struct KvLayer {
  std::byte* data = nullptr;
  std::int64_t blocks = 0;
  std::int64_t stride_bytes = 0;
  KvSpec spec;
};

// The sequences of a step, in host memory. Sequence s has the queries [query_starts[s], query_starts[s + 1]).
// They are the last ones of its first lengths[s] tokens (any tokens if attention is neither causal nor
// windowed). Token t is in block block_tables[s * table_stride + t / block_size]. Blocks before a sliding
// window are never read and may contain any value.
struct AttentionShape {
  std::span<const std::int32_t> query_starts;  // [sequences + 1]
  std::span<const std::int32_t> lengths;       // [sequences]: number of tokens with KV, including those of
                                               // this step
  std::span<const std::int32_t> block_tables;
  std::int64_t table_stride = 0;
  // For recorded steps (Stream::record): each sequence has at most one query, and sequences without a query
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
  // > 0: every layer that uses the plan has this window, and the plan leaves out the tokens before it. 0: any
  // window.
  int window = 0;
  bool causal = true;  // for every layer that uses the plan
};

// A backend's plan: created once (make_attention_plan), filled in every step (plan_attention), read by every
// layer.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
};

}  // namespace octavo
