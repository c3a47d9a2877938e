#include "model/shard.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "model/blocks/block.h"
#include "model/network.h"

namespace octavo {
namespace {

// The spec of the complete network.
ModelSpec whole_of(ModelSpec spec) {
  spec.shard = {};
  spec.stage = {};
  return spec;
}

}  // namespace

Result<> check_shard(const ModelSpec& spec) {
  if (spec.shard.expert_ranks() == 1) return {};
  const Network network = network_of(whole_of(spec));
  if (spec.shard.engines > 1)
    for (const Layer& layer : network.layers)
      for (const Block* block : layer.blocks()) TRY_VOID(block->spreads(spec.shard));
  if (spec.shard.size == 1) return {};
  for (const NetworkPart* part : network.parts()) TRY_VOID(part->splits(spec.shard));
  return {};
}

Result<std::vector<Stage>> divide_layers(const ModelSpec& spec, int stages) {
  constexpr std::string_view kStages = "pipeline_parallel_size";
  const int layers = static_cast<int>(spec.layers.size());
  if (stages > layers) return invalid(kStages, "is {}, but the model has only {} layers", stages, layers);
  if (stages > 1 && (spec.media.tower || spec.head))
    return field_failure(kStages, ErrorCode::unsupported, "must be 1 for models with {}",
                         spec.head ? "a head (embeddings, rerankers)" : "encoders of images or sound");
  Network network = network_of(whole_of(spec));
  if (stages > 1 && std::ranges::any_of(network.parts(), &NetworkPart::spans_layers))
    return field_failure(kStages, ErrorCode::unsupported,
                         "must be 1 for this model, because its layers share matrices, keys, values, "
                         "residuals or selected tokens, or have several residuals or separate inputs");
  std::vector<double> begins(static_cast<std::size_t>(layers) + 1);  // number of parameters before each layer
  begins[0] = static_cast<double>(spec.vocab) * spec.dim;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    ParameterList list;
    for (Block* block : network.layers[i].blocks()) block->list(list);
    begins[i + 1] = begins[i];
    for (const MatrixParameter* matrix : list.matrices) begins[i + 1] += static_cast<double>(matrix->elements());
  }
  const double all = begins.back() + begins[0];
  std::vector<Stage> found;
  int first = 0;
  for (int i = 0; i < stages; ++i) {
    // A stage ends at the layer boundary that is nearest to its share of the parameters. Every stage has at
    // least one layer.
    const double wanted = all * (i + 1) / stages;
    int end = first + 1;
    while (end < layers - (stages - 1 - i) &&
           std::abs(begins[static_cast<std::size_t>(end) + 1] - wanted) <
               std::abs(begins[static_cast<std::size_t>(end)] - wanted))
      ++end;
    if (i == stages - 1) end = layers;
    found.push_back({.index = i, .count = stages, .first_layer = first, .end_layer = end});
    first = end;
  }
  return found;
}

}  // namespace octavo
