// Computes from the spec how the layers of a network share the KV cache and the sequences' states.
// Layers with sliding windows need fewer blocks than layers with full attention, and layers with different
// heads need different numbers of bytes. As in vLLM's hybrid KV cache, layers with equal needs form groups of
// at most `planes` layers. Each group has separate block tables, and all groups allocate blocks from one
// pool. A block consists of planes: layer i of a group stores its keys and values in plane i. A block has the
// size that the largest group needs; smaller groups leave a part of it unused.
// A recurrent layer keeps an f32 state of fixed size for each running sequence. A sequence has one slot,
// which contains the states of all layers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "model/blocks/block.h"
#include "model/spec.h"

namespace octavo {

// Layers that share block tables.
struct LayerGroup {
  int window = 0;  // sliding window in tokens; 0: full attention, so blocks are kept until the sequence ends
  int q_heads = 0;
  KvSpec kv;
  bool causal = true;
  bool local = false;  // see AttentionMask::local
  int layers = 0;
};

// Where a layer stores its keys and values, and its state. Caches of compressed entries (Block::entries())
// also have a CacheLayer.
struct CacheLayer {
  int group = -1;  // -1: the layer stores nothing in the cache
  int plane = 0;
  std::int64_t state = -1;  // offset of the layer's state in a slot of states, in floats; -1: no state
  // CacheLayout::layers[entries] is the cache of the layer's compressed entries; -1: no entries
  int entries = -1;
  // CacheLayout::layers[earlier] is the cache of an earlier layer that the layer reads in addition to its
  // own; -1: none
  int earlier = -1;
};

struct CacheLayout {
  std::vector<LayerGroup> groups;
  std::vector<CacheLayer> layers;  // one per layer of the network, then one per cache of compressed entries
  int planes = 0;
  int block_size = 0;  // tokens per block: CacheOptions::block_size, rounded up to a multiple of KvSpec::rate
  std::int64_t state_floats = 0;  // number of floats in a slot of states

  std::int64_t state_bytes() const { return state_floats * static_cast<std::int64_t>(sizeof(float)); }
  // Bytes of a block, over all planes.
  std::int64_t block_bytes(const Ops& ops) const;
  // Returns the part of the pool that layer `layer` uses. The pool has `blocks` blocks and begins at `data`.
  KvLayer layer(const Ops& ops, std::byte* data, std::int64_t blocks, int layer) const;
  // Bytes that one more token needs in a long sequence. Layers with a sliding window do not count.
  double bytes_per_token(const Ops& ops) const;
};

struct CacheOptions {
  int block_size = 16;
  DType dtype = DType::bf16;
  // true: layers with a sliding window have separate groups and free old blocks; false: they keep all tokens
  bool window_groups = true;
  // true: all layers of a group share one plane. This is possible if each sequence is computed in one step,
  // so that no later step reads the cache (pooling models).
  bool one_plane = false;
};

KvSpec kv_spec(const CacheNeed& need, const CacheOptions& options);

CacheLayout cache_layout(const ModelSpec& spec, const CacheOptions& options);

// Returns the cache layout for keys and values of encoder rows, which layers with cross attention keep until
// the sequence ends. A sequence has rows_blocks(spec, layout) blocks. Without cross attention, the layout has
// no group.
CacheLayout cross_layout(const ModelSpec& spec, const CacheOptions& options);
std::int64_t rows_blocks(const ModelSpec& spec, const CacheLayout& layout);

}  // namespace octavo
