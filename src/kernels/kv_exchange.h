// The layout of a KV block in which all backends export and import blocks.
//
// A layer's block is [keys, values][kv_heads][block_size][head_dim], row-major, in the cache's format. For
// i8, scales follow: f32 [keys, values][kv_heads][block_size]. With values_in_keys the block holds only keys.
// Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/attention_plan.h"

namespace octavo {

// Number of parts of a block: keys and values, or only keys.
inline std::int64_t kv_exchange_parts(const KvSpec& spec) { return spec.values_in_keys > 0 ? 1 : 2; }

inline std::int64_t kv_exchange_bytes(const KvSpec& spec) {
  const std::int64_t vectors = kv_exchange_parts(spec) * spec.kv_heads * spec.entries();
  return vectors * spec.head_dim * static_cast<std::int64_t>(size_of(spec.dtype)) +
         (spec.dtype == DType::i8 ? vectors * static_cast<std::int64_t>(sizeof(float)) : 0);
}

// Functions that write and read one block of a layer in this layout: kv_exchange_bytes(spec) of host memory.
// Thread-safe while no operator writes the block (export) or uses it (import).
struct KvExchange {
  // Name of the backend's layout inside a block; equal names mean equal layouts, across builds and machines.
  std::string_view layout;
  // True: the backend's layout equals the exchange layout. So consecutive layers can be copied at once: `out`
  // and `bytes` contain all of them, and the KvLayer is the first.
  bool joins;
  void (*export_block)(const KvLayer&, std::int64_t block, std::span<std::byte> out);
  void (*import_block)(const KvLayer&, std::int64_t block, std::span<const std::byte> bytes);
};

// Exchange functions of the backend with this name (Backend::name). Null: it cannot export blocks.
const KvExchange* kv_exchange(std::string_view backend);

const KvExchange* cuda_kv_exchange();  // null in builds without CUDA
namespace reference {
extern const KvExchange kKvExchange;
}
namespace cpu {
extern const KvExchange kKvExchange;
}

}  // namespace octavo
