#include "engine/cache/ranked_kv_memory.h"

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

// A rank has the heads from `first` on. Calls copy(all, part, bytes) for each contiguous run of these
// heads. `all` is the offset in a block with all heads, and `part` is the offset in the rank's block.
template <class Copy>
void each_run(const KvSpec& all, const KvSpec& part, int first, Copy&& copy) {
  const auto run = [&](std::size_t head_bytes, std::size_t all_begin, std::size_t part_begin) {
    for (std::int64_t plane = 0; plane < kv_exchange_parts(all); ++plane)
      copy(all_begin + static_cast<std::size_t>(plane * all.kv_heads + first) * head_bytes,
           part_begin + static_cast<std::size_t>(plane * part.kv_heads) * head_bytes,
           static_cast<std::size_t>(part.kv_heads) * head_bytes);
  };
  const auto tokens = static_cast<std::size_t>(all.block_size);
  const std::size_t head = tokens * static_cast<std::size_t>(all.vector_bytes());
  run(head, 0, 0);
  if (!all.scaled()) return;
  const auto parts = static_cast<std::size_t>(kv_exchange_parts(all));
  run(tokens * sizeof(float), parts * static_cast<std::size_t>(all.kv_heads) * head,
      parts * static_cast<std::size_t>(part.kv_heads) * head);
}

}  // namespace

Result<RankedKvMemory> RankedKvMemory::create(const RankCaches& caches, const Backend& backend,
                                              std::int64_t blocks, std::vector<std::span<std::byte>> memory,
                                              std::vector<SharedMemory> opened,
                                              std::vector<Buffer> on_devices) {
  RankedKvMemory ranked;
  ranked.pieces_ = PieceLayout::of(caches.whole);
  ranked.exchange_ = kv_exchange(backend.name);
  ranked.opened_ = std::move(opened);
  ranked.on_devices_ = std::move(on_devices);
  ranked.shares_.resize(caches.whole.layers.size());
  for (std::size_t rank = 0; rank < caches.ranks.size(); ++rank) {
    const RankCache& cache = caches.ranks[rank];
    for (std::size_t i = 0; i < cache.layout.layers.size(); ++i) {
      const std::size_t layer = i + static_cast<std::size_t>(cache.first_layer);
      const CacheLayer& whole = caches.whole.layers[layer];
      if (whole.group != cache.layout.layers[i].group)
        return field_failure("kv_transfer_config", ErrorCode::unsupported,
                             "is not supported: with this number of ranks, the groups of layers differ from "
                             "those with one rank");
      if (whole.group < 0) continue;
      Share share{.cache = cache.layout.layer(backend.ops, memory[rank].data(), blocks, static_cast<int>(i))};
      const int heads = caches.whole.groups[static_cast<std::size_t>(whole.group)].kv.kv_heads;
      share.first_head = share.cache.spec.kv_heads == heads ? 0 : cache.part * heads / cache.parts;
      ranked.shares_[layer].push_back(share);
    }
  }
  return ranked;
}

// Calls move(kv, share, begin, own) for each share of the piece. `begin` is the offset of the share's layer
// in the piece, and `own` is a buffer for the share.
template <class Move>
void RankedKvMemory::each_share(KvLocation location, std::size_t bytes, Move&& move) const {
  const PieceLayout::Group& group = pieces_.groups[static_cast<std::size_t>(location.part)];
  const auto layer_bytes = static_cast<std::size_t>(kv_exchange_bytes(group.kv));
  CHECK(group.layers.size() * layer_bytes <= bytes, "{} layers in {} bytes", group.layers.size(), bytes);
  std::vector<std::byte> own(layer_bytes);
  for (std::size_t i = 0; i < group.layers.size(); ++i)
    for (const Share& share : shares_[group.layers[i]])
      move(group.kv, share, i * layer_bytes,
           std::span(own).first(static_cast<std::size_t>(kv_exchange_bytes(share.cache.spec))));
}

// If several ranks have the same heads, the heads of the last rank are exported.
void RankedKvMemory::export_piece(KvLocation location, std::span<std::byte> out) const {
  std::ranges::fill(out, std::byte{});
  each_share(location, out.size(),
             [&](const KvSpec& all, const Share& share, std::size_t begin, std::span<std::byte> own) {
               exchange_->export_block(share.cache, location.number, own);
               each_run(all, share.cache.spec, share.first_head,
                        [&](std::size_t whole, std::size_t part, std::size_t bytes) {
                          std::memcpy(&out[begin + whole], &own[part], bytes);
                        });
             });
}

void RankedKvMemory::import_piece(KvLocation location, std::span<const std::byte> in) const {
  each_share(location, in.size(),
             [&](const KvSpec& all, const Share& share, std::size_t begin, std::span<std::byte> own) {
               each_run(all, share.cache.spec, share.first_head,
                        [&](std::size_t whole, std::size_t part, std::size_t bytes) {
                          std::memcpy(&own[part], &in[begin + whole], bytes);
                        });
               exchange_->import_block(share.cache, location.number, own);
             });
}

}  // namespace octavo
