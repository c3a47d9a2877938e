// Layout of a KV block in the CPU backend, which the product kernel reads without conversion.
//
// A block has the keys of all heads, then the values of all heads, in groups of 16 tokens. A group of keys
// is [head_dim / unit][16 tokens][unit], so that a vector has one dimension (in bf16, two) of 16 tokens. A
// group of values is [16 / unit][padded_dim][unit], so that a vector has 16 dimensions of one token (in
// bf16, of two). If values are parts of keys, they are not stored, and attention converts groups of keys to
// groups of values.
//
// i4 has the layout of i8, folded: of each 64 consecutive elements of keys, or 32 of values, a byte has the
// codes i (lower half) and i + 32 (or i + 16), which belong to the same token. So threads that write
// different tokens write no common byte.
#pragma once

#include "kernels/attention_plan.h"
#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kGroupTokens = 16;
constexpr int kMaxHeadDim = 1024;
// Number of consecutive elements in the lower halves of bytes. The next elements are in the upper halves.
constexpr std::int64_t kFoldedKeys = 2 * kGroupTokens;
constexpr std::int64_t kFoldedValues = kGroupTokens;
constexpr std::int64_t kScaleGroupBytes = 2 * kGroupTokens * static_cast<std::int64_t>(sizeof(float));

struct KvLayout {
  explicit KvLayout(const KvSpec& spec)
      : element_bytes(spec.dtype == DType::i4 ? 1 : static_cast<std::int64_t>(size_of(spec.dtype))),
        folds(spec.dtype == DType::i4 ? 2 : 1),
        unit(spec.dtype == DType::bf16 || element_bytes == 1 ? 2 : 1),
        groups(spec.block_size / kGroupTokens),
        padded_dim((spec.value_dim() + 15) / 16 * 16),
        key_group_bytes(kGroupTokens * spec.head_dim * element_bytes / folds),
        value_group_bytes(kGroupTokens * padded_dim * element_bytes / folds),
        values_begin(spec.kv_heads * groups * key_group_bytes),
        scales_begin(values_begin +
                     (spec.values_in_keys > 0 ? 0 : spec.kv_heads * groups * value_group_bytes)),
        block_bytes(scales_begin + (spec.scaled() ? spec.kv_heads * groups * kScaleGroupBytes : 0)) {}

  std::int64_t element_bytes;
  std::int64_t folds;       // number of elements per byte, if element_bytes is 1
  std::int64_t unit;        // number of adjacent dimensions (keys) or tokens (values)
  std::int64_t groups;
  std::int64_t padded_dim;  // width of a value, including padding
  std::int64_t key_group_bytes;
  std::int64_t value_group_bytes;
  std::int64_t values_begin;
  std::int64_t scales_begin;
  std::int64_t block_bytes;

  std::int64_t keys(std::int64_t head, std::int64_t group) const {
    return (head * groups + group) * key_group_bytes;
  }
  // Returns the byte offset of dimension d of a token in a group of values. The layout must not be folded.
  std::int64_t value(std::int64_t token, std::int64_t d) const {
    return ((token / unit * padded_dim + d) * unit + token % unit) * element_bytes;
  }
  std::int64_t scales(std::int64_t head, std::int64_t group) const {
    return scales_begin + (head * groups + group) * kScaleGroupBytes;
  }
  std::int64_t values(std::int64_t head, std::int64_t group) const {
    return values_begin + (head * groups + group) * value_group_bytes;
  }
};

}  // namespace octavo::cpu
