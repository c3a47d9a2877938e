#include "model/cache_layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "model/network.h"

namespace octavo {
namespace {

using LayersByNeed = std::map<CacheNeed, std::vector<std::size_t>>;

// Number of cached elements per token.
double numbers_of(const CacheNeed& need) {
  return static_cast<double>(need.kv_heads) * need.head_dim * (need.values_in_keys > 0 ? 1 : 2) / need.rate;
}

// Returns the number of layers per group. For each need, the layers that have it are counted. The result is
// the smallest of these counts, because this wastes the least memory. If the largest count is less than 5/4
// of it, the result is the largest count, so that each need has one group. Caches of compressed entries are
// small and are kept until the sequence ends, so the entries of all layers form one group.
int group_size(const LayersByNeed& layers_by_need) {
  double entries = 0;
  for (const auto& [need, layers] : layers_by_need)
    if (need.rate > 1) entries = std::max(entries, numbers_of(need) * static_cast<double>(layers.size()));
  std::size_t least = SIZE_MAX;
  for (const auto& [need, layers] : layers_by_need)
    if (entries > 0 && need.rate == 1) {
      const auto as_large = static_cast<std::size_t>(entries / numbers_of(need));
      least = std::min({least, layers.size(), std::max<std::size_t>(1, as_large)});
    }
  if (least < SIZE_MAX) return static_cast<int>(least);
  std::size_t most = 0;
  for (const auto& [need, layers] : layers_by_need) {
    least = std::min(least, layers.size());
    most = std::max(most, layers.size());
  }
  return static_cast<int>(most * 4 < least * 5 ? most : least);
}

// Returns the layer whose keys and values layer `layer` reads, or -1.
int source_of(const ModelSpec& spec, std::size_t layer) {
  const auto* attention = std::get_if<Attention>(&spec.layers[layer].mixer);
  return attention != nullptr ? attention->source : -1;
}

// Returns the layer whose keys and values layer `layer` reads in addition to its own, or -1.
int second_source_of(const ModelSpec& spec, std::size_t layer) {
  const auto* attention = std::get_if<LoopAttention>(&spec.layers[layer].mixer);
  return attention != nullptr ? attention->source : -1;
}

// Layout of all stages together.
CacheLayout whole_layout(const ModelSpec& spec, const CacheOptions& options) {
  const Network network = network_of(spec);
  bool one_plane = options.one_plane;  // impossible if a layer reads another layer's cache
  for (std::size_t i = 0; i < network.layers.size(); ++i)
    one_plane = one_plane && source_of(spec, i) < 0 && second_source_of(spec, i) < 0;
  LayersByNeed layers_by_need;
  CacheLayout layout{
      .groups = {}, .layers = std::vector<CacheLayer>(network.layers.size()), .block_size = options.block_size};
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    std::optional<CacheNeed> need = network.layers[i].cache();
    if (!need) continue;
    if (!options.window_groups) need->window = 0;
    layers_by_need[*need].push_back(i);
    if (const std::optional<CacheNeed> entries = network.layers[i].entries()) {
      layout.layers[i].entries = static_cast<int>(layout.layers.size());
      layers_by_need[*entries].push_back(layout.layers.size());
      layout.layers.emplace_back();
      layout.block_size = std::lcm(layout.block_size, entries->rate);
    }
  }
  layout.planes = one_plane ? 1 : group_size(layers_by_need);
  for (const auto& [need, layers] : layers_by_need) {
    const KvSpec kv = kv_spec(need, {.block_size = layout.block_size, .dtype = options.dtype});
    for (const std::size_t layer : layers) {
      const bool full = need.rate == 1 && !layout.groups.empty() && layout.groups.back().layers == layout.planes;
      if (layer == layers[0] || (full && !one_plane))
        layout.groups.push_back({need.window, need.q_heads, kv, need.causal, need.local});
      LayerGroup& group = layout.groups.back();
      const int plane = one_plane ? 0 : group.layers;
      layout.layers[layer].group = static_cast<int>(layout.groups.size()) - 1;
      layout.layers[layer].plane = plane;
      group.layers = plane + 1;
    }
  }
  for (std::size_t i = 0; i < network.layers.size(); ++i)
    if (const int source = source_of(spec, i); source >= 0)
      layout.layers[i] = layout.layers[static_cast<std::size_t>(source)];
  for (std::size_t i = 0; i < network.layers.size(); ++i)
    layout.layers[i].earlier = second_source_of(spec, i);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const std::int64_t floats = network.layers[i].state_floats;
    if (floats == 0) continue;
    layout.layers[i].state = layout.state_floats;
    layout.state_floats += floats;
  }
  return layout;
}

}  // namespace

KvSpec kv_spec(const CacheNeed& need, const CacheOptions& options) {
  return {need.kv_heads, need.head_dim,       std::lcm(options.block_size, need.rate),
          options.dtype, need.values_in_keys, need.index_dim,
          need.rate};
}

// Block tables are the same on all stages, so a stage has all groups of the network. It has planes only for
// its layers.
CacheLayout cache_layout(const ModelSpec& spec, const CacheOptions& options) {
  if (spec.stage.count == 1) return whole_layout(spec, options);
  ModelSpec whole_spec = spec;
  whole_spec.stage = {};
  CacheLayout layout = whole_layout(whole_spec, options);
  const Network network = network_of(spec);
  const std::vector<CacheLayer> all = std::move(layout.layers);
  layout.layers = {all.begin() + static_cast<std::ptrdiff_t>(spec.first_layer()),
                   all.begin() + static_cast<std::ptrdiff_t>(spec.end_layer())};
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const int entries = layout.layers[i].entries;
    if (entries < 0) continue;
    layout.layers[i].entries = static_cast<int>(layout.layers.size());
    layout.layers.push_back(all[static_cast<std::size_t>(entries)]);
  }
  for (LayerGroup& group : layout.groups) group.layers = 0;
  layout.planes = 0;
  layout.state_floats = 0;
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    CacheLayer& layer = layout.layers[i];
    if (layer.group >= 0) {
      layer.plane = layout.groups[static_cast<std::size_t>(layer.group)].layers++;
      layout.planes = std::max(layout.planes, layer.plane + 1);
    }
    if (layer.state < 0) continue;
    layer.state = layout.state_floats;
    layout.state_floats += network.layers[i].state_floats;
  }
  return layout;
}

CacheLayout cross_layout(const ModelSpec& spec, const CacheOptions& options) {
  CacheLayout layout{
      .groups = {}, .layers = std::vector<CacheLayer>(spec.layers.size()), .block_size = options.block_size};
  const Network network = network_of(spec);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const std::optional<CacheNeed> need = network.layers[i].source();
    if (!need) continue;
    const KvSpec kv = kv_spec(*need, options);
    if (layout.groups.empty())
      layout.groups.push_back({.q_heads = need->q_heads, .kv = kv, .causal = need->causal});
    layout.layers[i] = {.group = 0, .plane = layout.planes};
    layout.groups[0].layers = ++layout.planes;
  }
  return layout;
}

std::int64_t rows_blocks(const ModelSpec& spec, const CacheLayout& layout) {
  return (spec.media.tower->cross_rows() + layout.block_size - 1) / layout.block_size;
}

KvLayer CacheLayout::layer(const Ops& ops, std::byte* data, std::int64_t blocks, int layer) const {
  const CacheLayer& cached = layers[static_cast<std::size_t>(layer)];
  if (cached.group < 0) return {};
  const KvSpec& kv = groups[static_cast<std::size_t>(cached.group)].kv;
  return {.data = data + cached.plane * ops.kv_block_bytes(kv),
          .blocks = blocks,
          .stride_bytes = block_bytes(ops),
          .spec = kv};
}

std::int64_t CacheLayout::block_bytes(const Ops& ops) const {
  std::int64_t most = 0;
  for (const LayerGroup& group : groups) most = std::max(most, group.layers * ops.kv_block_bytes(group.kv));
  return most;
}

double CacheLayout::bytes_per_token(const Ops& ops) const {
  const auto growing = std::ranges::count_if(groups, [](const LayerGroup& g) { return g.window == 0; });
  return static_cast<double>(growing * block_bytes(ops)) / block_size;
}

}  // namespace octavo
