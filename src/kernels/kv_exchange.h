// One layout of a KV block for all backends: what leaves a device, and what another one takes.
//
// A layer's block is [keys, values][kv_heads][block_size][head_dim], row-major, in the cache's format; for i8
// scales follow, f32 [keys, values][kv_heads][block_size]. Where values are in the keys, there are keys alone.
// Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/attention_plan.h"

namespace octavo {

// Of a block: keys and values, or keys alone.
inline std::int64_t kv_exchange_parts(const KvSpec& spec) { return spec.values_in_keys > 0 ? 1 : 2; }

inline std::int64_t kv_exchange_bytes(const KvSpec& spec) {
  const std::int64_t vectors = kv_exchange_parts(spec) * spec.kv_heads * spec.entries();
  return vectors * spec.head_dim * static_cast<std::int64_t>(size_of(spec.dtype)) +
         (spec.dtype == DType::i8 ? vectors * static_cast<std::int64_t>(sizeof(float)) : 0);
}

// How a backend reads and writes one block of a layer in that layout, kv_exchange_bytes(spec) of host memory.
// Any thread, while no operator writes the block (export) or uses it (import).
struct KvExchange {
  // Names what a block looks like inside: the same in all builds and on all machines where it is the same.
  std::string_view layout;
  // Inside it is as it is outside, so that layers whose parts of a block lie one behind the other go as one:
  // `out` and `bytes` then have all of theirs, and the KvLayer is the first.
  bool joins;
  void (*export_block)(const KvLayer&, std::int64_t block, std::span<std::byte> out);
  void (*import_block)(const KvLayer&, std::int64_t block, std::span<const std::byte> bytes);
};

// Of the backend of that name (Backend::name). Null: its blocks stay on the device.
const KvExchange* kv_exchange(std::string_view backend);

const KvExchange* cuda_kv_exchange();  // null in builds without CUDA
namespace reference {
extern const KvExchange kKvExchange;
}
namespace cpu {
extern const KvExchange kKvExchange;
}

}  // namespace octavo
