#include "engine/cache/piece_layout.h"

#include <algorithm>

#include "kernels/kv_exchange.h"

namespace octavo {
namespace {

constexpr std::int64_t kStatePieceBytes = std::int64_t{1} << 20;  // used for models without attention

}  // namespace

PieceLayout PieceLayout::of(const CacheLayout& layout) {
  PieceLayout pieces{.state_bytes = layout.state_bytes()};
  for (const LayerGroup& each : layout.groups) {
    const int number = static_cast<int>(pieces.groups.size());
    Group& group = pieces.groups.emplace_back(Group{.window = each.window, .kv = each.kv});
    // A layer that reads the KV of another layer has the same plane as that layer.
    for (std::size_t i = 0; i < layout.layers.size(); ++i)
      if (layout.layers[i].group == number && layout.layers[i].plane == static_cast<int>(group.layers.size()))
        group.layers.push_back(i);
    pieces.piece_bytes = std::max(pieces.piece_bytes, std::ssize(group.layers) * kv_exchange_bytes(each.kv));
  }
  if (pieces.piece_bytes == 0) pieces.piece_bytes = std::min(pieces.state_bytes, kStatePieceBytes);
  return pieces;
}

void PieceLayout::describe(BlockFormat& format) const {
  format.bytes = piece_bytes;
  format.windows.clear();
  for (const Group& group : groups) format.windows.push_back(group.window);
  format.state_pieces = static_cast<int>((state_bytes + piece_bytes - 1) / piece_bytes);
  format.planes.clear();
  if (groups.size() != 1 || groups[0].window != 0 || state_bytes > 0 || groups[0].kv.rate > 1) return;
  const KvSpec& kv = groups[0].kv;
  const int vectors = static_cast<int>(kv_exchange_parts(kv)) * kv.kv_heads;
  for (std::size_t layer = 0; layer < groups[0].layers.size(); ++layer) {
    format.planes.push_back({vectors, static_cast<int>(kv.vector_bytes())});
    if (kv.scaled()) format.planes.push_back({vectors, sizeof(float)});
  }
}

}  // namespace octavo
