// What a KV block looks like to the CPU backend.
//
// A block holds its heads one after the other, each head its keys, then its values, both in groups of 16
// tokens. A group of keys is [head_dim / unit][16 tokens][unit], so that a vector holds one dimension (a pair
// of them in bf16) of 16 tokens; a group of values is [16 / unit][padded_dim][unit], a vector being one token
// (a pair) and 16 dimensions. Both are operands of the product kernel as they are.
#pragma once

#include "kernels/attention_plan.h"
#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kGroupTokens = 16;
constexpr int kMaxHeadDim = 256;

struct KvLayout {
  explicit KvLayout(const KvSpec& spec)
      : element_bytes(static_cast<std::int64_t>(size_of(spec.dtype))),
        unit(spec.dtype == DType::bf16 ? 2 : 1),
        groups(spec.block_size / kGroupTokens),
        padded_dim((spec.head_dim + 15) / 16 * 16),
        key_group_bytes(kGroupTokens * spec.head_dim * element_bytes),
        value_group_bytes(kGroupTokens * padded_dim * element_bytes),
        head_bytes(groups * (key_group_bytes + value_group_bytes)),
        block_bytes(spec.kv_heads * head_bytes) {}

  std::int64_t element_bytes;
  std::int64_t unit;    // tokens or dimensions side by side
  std::int64_t groups;  // of a block
  std::int64_t padded_dim;
  std::int64_t key_group_bytes;
  std::int64_t value_group_bytes;
  std::int64_t head_bytes;
  std::int64_t block_bytes;

  // Bytes from the block's begin.
  std::int64_t keys(std::int64_t head, std::int64_t group) const {
    return head * head_bytes + group * key_group_bytes;
  }
  std::int64_t values(std::int64_t head, std::int64_t group) const {
    return head * head_bytes + groups * key_group_bytes + group * value_group_bytes;
  }
};

}  // namespace octavo::cpu
