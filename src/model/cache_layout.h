// How the layers of a network share the KV cache and the sequences' states, computed from the spec.
//
// Layers with sliding windows need fewer blocks than layers with full attention, and layers with different
// heads need different numbers of bytes. As in vLLM's hybrid KV cache, layers with equal needs form groups of
// at most `planes` layers. Each group has separate block tables, and all groups allocate blocks from one
// pool. Layer i of a group stores its keys and values in plane i of a block. A block has the size that the
// largest group needs; smaller groups waste the rest.
//
// A recurrent layer keeps an f32 state of fixed size for each running sequence. A sequence has one slot,
// which contains the states of all layers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "model/blocks/block.h"
#include "model/spec.h"

namespace octavo {

// A group of layers that share block tables.
struct LayerGroup {
  int window = 0;  // window in tokens; 0: full attention, blocks are kept until the sequence ends
  int q_heads = 0;
  KvSpec kv;
  bool causal = true;
  bool local = false;  // see AttentionMask::local
  int layers = 0;
};

// Cache of a layer, or of a layer's compressed entries (Block::entries()). Caches of entries follow the
// caches of all layers.
struct CacheLayer {
  int group = -1;  // index of the group; -1: the layer stores nothing in the cache
  int plane = 0;
  std::int64_t state = -1;  // offset of the layer's state in a sequence's states; -1: no state
  int entries = -1;         // index in CacheLayout::layers of the layer's compressed entries; -1: no entries
};

struct CacheLayout {
  std::vector<LayerGroup> groups;
  std::vector<CacheLayer> layers;  // one per layer of the network, then the compressed entries
  int planes = 0;
  int block_size = 0;  // tokens per block: CacheOptions::block_size, rounded up to a multiple of KvSpec::rate
  std::int64_t state_floats = 0;  // number of f32 in the states of a sequence, for all recurrent layers

  std::int64_t state_bytes() const { return state_floats * static_cast<std::int64_t>(sizeof(float)); }
  // Returns the bytes of a block, over all planes.
  std::int64_t block_bytes(const Ops& ops) const;
  // Returns the part for layer `layer` of a pool of `blocks` blocks at `data`.
  KvLayer layer(const Ops& ops, std::byte* data, std::int64_t blocks, int layer) const;
  // Returns the bytes that one more token needs in a long sequence. Layers with a window need none.
  double bytes_per_token(const Ops& ops) const;
};

struct CacheOptions {
  int block_size = 16;
  DType dtype = DType::bf16;
  bool window_groups = true;  // false: layers with a window keep all tokens, like other layers
  // Whether all layers of a group share one plane. This is possible if each text is computed in one step and
  // its cache is not read afterwards.
  bool one_plane = false;
};

// Returns the format of the cache for this need.
KvSpec kv_spec(const CacheNeed& need, const CacheOptions& options);

CacheLayout cache_layout(const ModelSpec& spec, const CacheOptions& options);

// Returns the layout of the cache of an encoder's keys and values, which every layer with cross attention
// keeps until the sequence ends. A sequence has rows_blocks(spec, layout) blocks. Without cross attention,
// the layout has no group.
CacheLayout cross_layout(const ModelSpec& spec, const CacheOptions& options);
std::int64_t rows_blocks(const ModelSpec& spec, const CacheLayout& layout);

}  // namespace octavo
