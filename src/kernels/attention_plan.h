// Types that describe the attention of one step: the format of the KV cache, the sequences of the step, and
// the plan that every layer reads.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace octavo {

// Format of one layer's KV cache.
struct KvSpec {
  int kv_heads = 0;
  int head_dim = 0;           // width of keys, and of values unless values_in_keys > 0; a multiple of 8
  int block_size = 16;        // tokens per block; a multiple of 16
  DType dtype = DType::bf16;  // f32, f16, bf16, f8_e4m3, or i8 and i4, with scales (kv_quant.h)
  // If values_in_keys > 0, the first values_in_keys elements of a key are also the value, and values are
  // not stored separately (latent attention).
  int values_in_keys = 0;
  // Number of elements at the end of each key that only the indexer of sparse attention reads
  // (ChooseTokensArgs); attention ignores these elements. Requires values_in_keys > 0.
  int index_dim = 0;
  // Tokens per cache entry. If rate > 1, an entry is a vector compressed from `rate` tokens (CompressArgs).
  int rate = 1;

  int entries() const { return block_size / rate; }  // cache entries per block
  // Returns true if the value of a token is its complete key, apart from the index_dim elements. Such a
  // cache has one KV head, and every backend stores its rows contiguously.
  bool shared_rows() const { return values_in_keys > 0 && values_in_keys == score_dim(); }
  int score_dim() const { return head_dim - index_dim; }
  int value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
  // Bytes of a key or value, without its scale.
  std::int64_t vector_bytes() const { return std::int64_t{head_dim} * bits_of(dtype) / 8; }
  // Returns true if each key and value has an f32 scale.
  bool scaled() const { return dtype == DType::i8 || dtype == DType::i4; }
  // Returns true if keys and values are stored rotated (kv_codes.h). Attention rotates its
  // queries before, and its results after.
  bool rotated() const { return dtype == DType::i4; }
  bool operator==(const KvSpec&) const = default;
};

// KV cache of one layer. It has `blocks` blocks of Ops::kv_block_bytes(spec) bytes, and each block begins
// stride_bytes after the previous one. The layout inside a block depends on the backend.
struct KvLayer {
  std::byte* data = nullptr;
  std::int64_t blocks = 0;
  std::int64_t stride_bytes = 0;
  KvSpec spec;
};

// The sequences of a step, in host memory. Sequence s has the queries [query_starts[s], query_starts[s + 1]).
// If attention is causal or windowed, these are the queries of its last tokens; otherwise they may be of any
// of its tokens. Sequence s has lengths[s] tokens, and its token t is in block block_tables[s * table_stride
// + t / block_size]. Attention never reads blocks that are before the sliding window, so their table entries
// may have any value.
struct AttentionShape {
  std::span<const std::int32_t> query_starts;  // [sequences + 1]
  // [sequences]: tokens with KV, including the tokens of this step
  std::span<const std::int32_t> lengths;
  std::span<const std::int32_t> block_tables;
  std::int64_t table_stride = 0;
  // True if the step is captured in a CUDA graph (Stream::record). Then each sequence has at most one
  // query, and sequences without a query come last, so that kernel launches depend only on the number of
  // sequences.
  bool recorded = false;
};

struct AttentionLimits {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_length = 0;
  int q_heads = 0;
  KvSpec kv;
  // Sliding window in tokens, if all layers that use the plan have the same window. The plan then omits
  // tokens that are before the window. 0: windows may differ by layer.
  int window = 0;
  bool causal = true;  // whether every layer that uses the plan is causal
};

// Division of one step's attention into work for threads or thread blocks. Ops::make_attention_plan
// allocates a plan once, Ops::plan_attention fills the plan in every step, and every layer reads the plan.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
};

}  // namespace octavo
