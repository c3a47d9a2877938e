// How the layers of a network share the KV cache: derived from its spec.
//
// Layers that forget (sliding window) and layers that remember (full attention) need different numbers of
// blocks. As in vLLM's hybrid KV cache, layers form groups of equal size, each group with block tables of its
// own, and all groups draw blocks from one pool: a block of the pool has `planes` planes, and the i-th layer
// of a group keeps its keys and values in plane i. Every group has as many layers as there are planes; a last
// group may have fewer, and then wastes the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "model/spec.h"

namespace octavo {

// Layers that share block tables.
struct LayerGroup {
  int window = 0;  // tokens; 0: full attention, blocks are kept to the end
};

struct CacheLayer {
  int group = 0;
  int plane = 0;
};

struct CacheLayout {
  std::vector<LayerGroup> groups;
  std::vector<CacheLayer> layers;  // one for each layer of the network
  int planes = 0;
  KvSpec kv;

  // Bytes of a block of the pool, all planes.
  std::int64_t block_bytes(const Ops& ops) const { return planes * ops.kv_block_bytes(kv); }
  // Layer `layer`'s part of a pool of `blocks` blocks that begins at `data`.
  KvLayer layer(const Ops& ops, std::byte* data, std::int64_t blocks, int layer) const;
  // Bytes that one token adds to a long sequence: groups with a window have stopped growing.
  double bytes_per_token(const Ops& ops) const;
};

struct CacheOptions {
  int block_size = 16;
  DType dtype = DType::bf16;
  bool window_groups = true;  // false: layers with a window keep everything, in one group with all others
};

CacheLayout cache_layout(const ModelSpec& spec, const CacheOptions& options);

}  // namespace octavo
