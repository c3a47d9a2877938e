#include "model/cache_layout.h"

#include <algorithm>
#include <map>

namespace octavo {
namespace {

// Layers in a group, given how many layers there are of each window. The smallest number wastes least, unless
// the largest is about the same: then one group of each is best.
int group_size(const std::map<int, std::vector<int>>& layers_by_window) {
  int least = INT32_MAX;
  int most = 0;
  for (const auto& [window, layers] : layers_by_window) {
    least = std::min(least, static_cast<int>(layers.size()));
    most = std::max(most, static_cast<int>(layers.size()));
  }
  return most * 4 < least * 5 ? most : least;
}

}  // namespace

CacheLayout cache_layout(const ModelSpec& spec, const CacheOptions& options) {
  const Attention& a = spec.layers[0].attention;
  CacheLayout layout;
  layout.kv = {.kv_heads = a.kv_heads,
               .head_dim = a.head_dim,
               .block_size = options.block_size,
               .dtype = options.dtype};
  std::map<int, std::vector<int>> layers_by_window;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const Attention& other = spec.layers[i].attention;
    CHECK(other.kv_heads == a.kv_heads && other.head_dim == a.head_dim, "layer {} has other heads", i);
    layers_by_window[options.window_groups ? other.window : 0].push_back(static_cast<int>(i));
  }
  layout.planes = group_size(layers_by_window);
  layout.layers.resize(spec.layers.size());
  for (const auto& [window, layers] : layers_by_window) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const int plane = static_cast<int>(i) % layout.planes;
      if (plane == 0) layout.groups.push_back({window});
      layout.layers[static_cast<std::size_t>(layers[i])] = {static_cast<int>(layout.groups.size()) - 1,
                                                            plane};
    }
  }
  return layout;
}

KvLayer CacheLayout::layer(const Ops& ops, std::byte* data, std::int64_t blocks, int layer) const {
  const CacheLayer& place = layers[static_cast<std::size_t>(layer)];
  return {.data = data + place.plane * ops.kv_block_bytes(kv),
          .blocks = blocks,
          .stride_bytes = block_bytes(ops),
          .spec = kv};
}

double CacheLayout::bytes_per_token(const Ops& ops) const {
  const auto growing = std::ranges::count_if(groups, [](const LayerGroup& g) { return g.window == 0; });
  return static_cast<double>(growing * block_bytes(ops)) / kv.block_size;
}

}  // namespace octavo
