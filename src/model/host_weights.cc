#include "model/host_weights.h"

#include <utility>
#include <vector>

namespace octavo {
namespace {

// Share of the free memory for the weights on the device; the rest is for workspaces and the KV cache.
constexpr double kDeviceShare = 0.8;

std::vector<const MatrixParameter*> experts_of(const Layer& layer) {
  ParameterList list;
  for (Block* block : layer.blocks()) block->list(list);
  std::vector<const MatrixParameter*> experts;
  for (const ParameterList::ExpertProduct& product : list.experts)
    for (const MatrixParameter& matrix : *product.matrices) experts.push_back(&matrix);
  return experts;
}

}  // namespace

std::set<const MatrixParameter*> choose_host_weights(
    Network& network, std::size_t first_layer, const HostWeights& wanted, double available,
    const std::function<double(const MatrixParameter&)>& bytes_of) {
  std::set<const MatrixParameter*> chosen;
  if (!wanted.any()) return chosen;
  double on_device = 0;
  const ParameterList all = network.parameters();
  for (const MatrixParameter* matrix : all.matrices) on_device += bytes_of(*matrix);
  const auto take = [&](const MatrixParameter& matrix) {
    if (!chosen.insert(&matrix).second) return 0.0;
    on_device -= bytes_of(matrix);
    return bytes_of(matrix);
  };
  std::vector<const MatrixParameter*> later;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const bool moves = wanted.expert_layers < 0 ? on_device > kDeviceShare * available
                                                : std::cmp_less(first_layer + i, wanted.expert_layers);
    for (const MatrixParameter* matrix : experts_of(network.layers[i]))
      if (moves)
        take(*matrix);
      else
        later.push_back(matrix);
  }
  for (const MatrixParameter* matrix : all.matrices)
    if (matrix->use == MatrixUse::layer) later.push_back(matrix);
  auto left = static_cast<double>(wanted.bytes);
  for (const MatrixParameter* matrix : later) {
    if (left <= 0) break;
    left -= take(*matrix);
  }
  return chosen;
}

}  // namespace octavo
