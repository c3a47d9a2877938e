// The shape of one step's attention, worked out once on the host and used by every layer.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace octavo {

// The format of one layer's KV cache.
struct KvSpec {
  int kv_heads = 0;
  int head_dim = 0;           // of keys, and of values unless they are in the keys; a multiple of 8
  int block_size = 16;        // tokens; a multiple of 16
  DType dtype = DType::bf16;  // f32, f16, bf16, f8_e4m3, or i8 with scales (kv_quant.h)
  // > 0: a token's values are the first so many numbers of its keys and are not stored beside them, as in
  // latent attention.
  int values_in_keys = 0;
  // The last so many numbers of a key are an indexer's, by which tokens are chosen (ChooseTokensArgs), and no
  // part of scores. With values_in_keys.
  int index_dim = 0;
  // An entry stands for so many tokens, and a block holds block_size / rate of them (CompressArgs).
  int rate = 1;

  int entries() const { return block_size / rate; }  // of a block
  // Keys are values as they are: of one head, and rows one behind the other, in every backend.
  bool shared_rows() const { return values_in_keys > 0 && values_in_keys == score_dim(); }
  int score_dim() const { return head_dim - index_dim; }
  int value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
  bool operator==(const KvSpec&) const = default;
};

// One layer's part of the KV cache: `blocks` blocks, each block_bytes(spec) long, `stride_bytes` apart. What
// a block looks like inside is known to the backend alone.
struct KvLayer {
  std::byte* data = nullptr;
  std::int64_t blocks = 0;
  std::int64_t stride_bytes = 0;
  KvSpec spec;
};

// The sequences of a step, flat. Host memory. Sequence s has queries [query_starts[s], query_starts[s + 1]), which are
// the last of its first lengths[s] tokens (not causal, without a window: any); token t of it lies in block block_tables[s *
// table_stride + t / block_size]. Blocks that have left a sliding window are never looked at and may hold any
// value.
struct AttentionShape {
  std::span<const std::int32_t> query_starts;  // sequences + 1
  std::span<const std::int32_t> lengths;       // sequences; tokens with KV after this step's are stored
  std::span<const std::int32_t> block_tables;
  std::int64_t table_stride = 0;
  // For steps that are recorded (Stream::record), where every sequence has one query or none and those
  // without come last: what is launched then depends on the number of sequences alone.
  bool recorded = false;
};

// What a plan must have room for.
struct AttentionLimits {
  int max_tokens = 0;
  int max_sequences = 0;
  int max_length = 0;
  int q_heads = 0;
  KvSpec kv;
  // > 0: every layer that reads the plan has this window, so that tokens before it are left out of the plan.
  // 0: layers may have any window, or none.
  int window = 0;
  bool causal = true;  // of every layer that reads the plan
};

// Backend-defined; made once (make_attention_plan), filled every step (plan_attention), read by every layer.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
};

}  // namespace octavo
