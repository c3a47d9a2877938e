// The exchange layout of a KV block: all backends export and import blocks in this layout.
//
// A layer's block is [keys, values][kv_heads][block_size][head_dim], row-major, in the cache's format. If
// the format has scales, f32 scales [keys, values][kv_heads][block_size] follow. If values_in_keys > 0, the
// block has only keys. Numbers are little-endian. A byte of i4 has the codes of elements 2i (lower half) and
// 2i + 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/attention_plan.h"

namespace octavo {

// Returns 2 if a block has keys and values, and 1 if it has only keys.
inline std::int64_t kv_exchange_parts(const KvSpec& spec) { return spec.values_in_keys > 0 ? 1 : 2; }

inline std::int64_t kv_exchange_bytes(const KvSpec& spec) {
  const std::int64_t vectors = kv_exchange_parts(spec) * spec.kv_heads * spec.entries();
  return vectors * (spec.vector_bytes() + (spec.scaled() ? static_cast<std::int64_t>(sizeof(float)) : 0));
}

// Functions of a backend that export or import one block of a layer as kv_exchange_bytes(spec) bytes of
// host memory. They are thread-safe if no operator writes the block during an export, or uses the block
// during an import.
struct KvExchange {
  // Name of the backend's layout inside a block. Equal names mean equal layouts, also across builds and
  // machines.
  std::string_view layout;
  // True if the backend's layout is the exchange layout. Then one call can copy a block of several
  // consecutive layers: `out` or `bytes` covers all these layers, and the KvLayer is the first layer.
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
