#include "model/host_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace octavo {
namespace {

// Share of the free memory for the weights on the device; the rest is for workspaces and the KV cache.
constexpr double kDeviceShare = 0.8;

ParameterList parameters_of(const Layer& layer) {
  ParameterList list;
  for (Block* block : layer.blocks()) block->list(list);
  return list;
}

std::vector<const MatrixParameter*> experts_of(const Layer& layer) {
  const ParameterList list = parameters_of(layer);
  std::vector<const MatrixParameter*> experts;
  for (const ParameterList::ExpertProduct& product : list.experts)
    for (const MatrixParameter& matrix : *product.matrices) experts.push_back(&matrix);
  return experts;
}

}  // namespace

HostMatrices choose_host_weights(Network& network, std::size_t first_layer, const HostWeights& wanted,
                                 double available,
                                 const std::function<double(const MatrixParameter&)>& bytes_of) {
  HostMatrices chosen;
  if (!wanted.any()) return chosen;
  double on_device = 0;
  const ParameterList all = network.parameters();
  for (const MatrixParameter* matrix : all.matrices) on_device += bytes_of(*matrix);
  const auto take = [&](const MatrixParameter& matrix, HostUse use) {
    if (!chosen.try_emplace(&matrix, use).second) return 0.0;
    on_device -= bytes_of(matrix);
    return bytes_of(matrix);
  };
  std::vector<const MatrixParameter*> later;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const bool moves = wanted.expert_layers < 0 ? on_device > kDeviceShare * available
                                                : std::cmp_less(first_layer + i, wanted.expert_layers);
    for (const MatrixParameter* matrix : experts_of(network.layers[i]))
      if (moves)
        take(*matrix, HostUse::cpu_computes);
      else
        later.push_back(matrix);
  }
  for (const MatrixParameter* matrix : all.matrices)
    if (matrix->use == MatrixUse::layer) later.push_back(matrix);
  auto left = static_cast<double>(wanted.bytes);
  for (const MatrixParameter* matrix : later) {
    if (left <= 0) break;
    left -= take(*matrix, HostUse::gpu_reads);
  }
  return chosen;
}

HostLayers host_layers(Network& network, const HostMatrices& matrices) {
  HostLayers layers;
  for (const Layer& layer : network.layers) {
    const ParameterList list = parameters_of(layer);
    const auto uses = [&](HostUse use) {
      return std::ranges::any_of(list.matrices, [&](const MatrixParameter* matrix) {
        const auto found = matrices.find(matrix);
        return found != matrices.end() && found->second == use;
      });
    };
    layers.gpu_reads += uses(HostUse::gpu_reads) ? 1 : 0;
    layers.cpu_computes += uses(HostUse::cpu_computes) ? 1 : 0;
  }
  return layers;
}

}  // namespace octavo
