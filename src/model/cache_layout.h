// How the layers of a network share the KV cache and the states of sequences: derived from its spec.
//
// Layers with sliding windows and layers with full attention need different numbers of blocks. Layers with
// other heads need other numbers of bytes. As in vLLM's hybrid KV cache, layers with equal needs form
// groups of at most `planes` layers. Each group has separate block tables, and all groups draw blocks from
// one pool. The i-th layer of a group keeps its keys and values in plane i of a block. A block has room for
// the largest group; smaller groups waste the rest.
//
// Recurrent layers keep an f32 state of fixed size for each running sequence. A sequence has a slot, with
// the states of all layers next to each other.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "model/blocks/block.h"
#include "model/spec.h"

namespace octavo {

// Layers that share block tables.
struct LayerGroup {
  int window = 0;  // tokens; 0: full attention, blocks are kept to the end
  int q_heads = 0;
  KvSpec kv;
  bool causal = true;
  bool local = false;  // AttentionMask::local
  int layers = 0;
};

// Cache of a layer or, after those of all layers, of a layer's compressed entries (Block::entries()).
struct CacheLayer {
  int group = -1;  // -1: the layer keeps nothing in the cache
  int plane = 0;
  std::int64_t state = -1;  // offset of the layer's state in a sequence's states; -1: no state
  int entries = -1;         // index of its entries in CacheLayout::layers; -1: none
};

struct CacheLayout {
  std::vector<LayerGroup> groups;
  std::vector<CacheLayer> layers;  // one per layer of the network, then those of entries
  int planes = 0;
  int block_size = 0;             // tokens: CacheOptions::block_size, or the next multiple of KvSpec::rate
  std::int64_t state_floats = 0;  // floats of a sequence's states in all recurrent layers

  std::int64_t state_bytes() const { return state_floats * static_cast<std::int64_t>(sizeof(float)); }
  // Bytes of a block of the pool, all planes.
  std::int64_t block_bytes(const Ops& ops) const;
  // Layer `layer`'s part of a pool of `blocks` blocks that begins at `data`.
  KvLayer layer(const Ops& ops, std::byte* data, std::int64_t blocks, int layer) const;
  // Bytes that one token adds to a long sequence: groups with a window have stopped growing.
  double bytes_per_token(const Ops& ops) const;
};

struct CacheOptions {
  int block_size = 16;
  DType dtype = DType::bf16;
  bool window_groups = true;  // if false, layers with a window keep all tokens, as layers without one
  // Each text is computed in one step, and its cache is not read afterwards, so that the layers of a group
  // share one plane.
  bool one_plane = false;
};

// The cache of a block with this need.
KvSpec kv_spec(const CacheNeed& need, const CacheOptions& options);

CacheLayout cache_layout(const ModelSpec& spec, const CacheOptions& options);

// Layout of the keys and values of encoders' rows. All layers with cross attention keep them for the
// lifetime of a sequence. A sequence has rows_blocks(spec, layout) blocks. The layout has no group if no
// layer has cross attention.
CacheLayout cross_layout(const ModelSpec& spec, const CacheOptions& options);
std::int64_t rows_blocks(const ModelSpec& spec, const CacheLayout& layout);

}  // namespace octavo
