// The exchange layout: the layout of a KV block in which all backends export and import blocks.
//
// A layer's block is [keys, values][kv_heads][block_size][head_dim], row-major, in the cache's format. For
// i8, scales follow: f32 [keys, values][kv_heads][block_size]. With values_in_keys, the block has only keys.
// Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/attention_plan.h"

namespace octavo {

// Returns the number of parts of a block: 2 for keys and values, 1 if only keys are stored.
inline std::int64_t kv_exchange_parts(const KvSpec& spec) { return spec.values_in_keys > 0 ? 1 : 2; }

inline std::int64_t kv_exchange_bytes(const KvSpec& spec) {
  const std::int64_t vectors = kv_exchange_parts(spec) * spec.kv_heads * spec.entries();
  return vectors * spec.head_dim * static_cast<std::int64_t>(size_of(spec.dtype)) +
         (spec.dtype == DType::i8 ? vectors * static_cast<std::int64_t>(sizeof(float)) : 0);
}

// A backend's functions that write and read one block of a layer in this layout: kv_exchange_bytes(spec)
// bytes of host memory. They are thread-safe while no operator writes the block (export) or uses it (import).
struct KvExchange {
  // name of the backend's layout inside a block; equal names mean equal layouts, across builds and machines
  std::string_view layout;
  // True if the backend's layout equals the exchange layout. Then consecutive layers can be copied in one
  // call: `out` and `bytes` contain all of them, and the KvLayer is the first one.
  bool joins;
  void (*export_block)(const KvLayer&, std::int64_t block, std::span<std::byte> out);
  void (*import_block)(const KvLayer&, std::int64_t block, std::span<const std::byte> bytes);
};

// Returns the exchange functions of the backend with this name (Backend::name), or null if it cannot export
// blocks.
const KvExchange* kv_exchange(std::string_view backend);

const KvExchange* cuda_kv_exchange();  // returns null in builds without CUDA
namespace reference {
extern const KvExchange kKvExchange;
}
namespace cpu {
extern const KvExchange kKvExchange;
}

}  // namespace octavo
