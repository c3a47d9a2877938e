#include "model/network.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/build_network.h"
#include "model/load_matrix.h"

namespace octavo {

std::vector<Block*> Layer::blocks() const {
  std::vector<Block*> blocks;
  for (const std::unique_ptr<Phase>& phase : phases) phase->add_blocks(blocks);
  return blocks;
}

namespace {

using NeedOf = std::optional<CacheNeed> (Block::*)() const;

std::optional<CacheNeed> first_need(const Layer& layer, NeedOf need_of) {
  for (const Block* block : layer.blocks())
    if (const std::optional<CacheNeed> need = (block->*need_of)()) return need;
  return {};
}

}  // namespace

std::optional<CacheNeed> Layer::cache() const { return first_need(*this, &Block::cache); }
std::optional<CacheNeed> Layer::entries() const { return first_need(*this, &Block::entries); }
std::optional<CacheNeed> Layer::source() const { return first_need(*this, &Block::source); }

const Phase& Layer::caching_phase() const {
  const auto found = std::ranges::find_if(phases, [](const std::unique_ptr<Phase>& phase) {
    std::vector<Block*> blocks;
    phase->add_blocks(blocks);
    return std::ranges::any_of(blocks, [](const Block* block) { return block->cache().has_value(); });
  });
  CHECK(found != phases.end(), "a layer that keeps nothing in the cache");
  return **found;
}

std::vector<NetworkPart*> Network::parts() const {
  std::vector<NetworkPart*> parts;
  const auto add = [&](NetworkPart* part) {
    if (part != nullptr) parts.push_back(part);
  };
  for (const std::unique_ptr<Phase>& input : inputs) add(input.get());
  add(residual.get());
  for (const Layer& layer : layers)
    for (const std::unique_ptr<Phase>& phase : layer.phases) add(phase.get());
  add(logits.get());
  add(pool.get());
  add(project.get());
  return parts;
}

ParameterList Network::parameters() {
  ParameterList list;
  list.add(ends->embedding);
  for (NetworkPart* part : parts()) part->list(list);
  list.add(ends->final_norm);
  list.add(ends->lm_head);
  return list;
}

namespace {

// Numbers the products by their position in the complete network, also in a stage, because adapters use these
// numbers.
// Products of shared matrices have one number, so an adapter changes all of them.
void number_products(const ModelSpec& spec, const std::string& prefix, Network& network) {
  const ParameterList own = network.parameters();
  std::size_t linear = kFirstLinearIndex, expert = kFirstLinearIndex + own.linears.size();
  if (spec.stage.count > 1) {
    ModelSpec all = spec;
    all.stage = {};
    Network whole = network_of(all, prefix);
    expert = kFirstLinearIndex + whole.parameters().linears.size();
    ParameterList before;
    for (std::size_t i = 0; i < spec.first_layer(); ++i)
      for (Block* block : whole.layers[i].blocks()) block->list(before);
    linear += before.linears.size();
    for (const ParameterList::ExpertProduct& product : before.experts) expert += product.matrices->size();
  }
  std::map<const MatrixParameter*, LinearParameter*> product_of;
  std::vector<MatrixParameter*> matrices;
  for (LinearParameter* each : own.linears) {
    each->index = linear++;
    product_of[&each->weight] = each;
    matrices.push_back(&each->weight);
  }
  for (const SharedMatrix& shared : take_shared(matrices))
    product_of[shared.matrix]->index = product_of[shared.first]->index;
  for (const ParameterList::ExpertProduct& product : own.experts)
    for (MatrixParameter& each : *product.matrices) each.index = expert++;
}

}  // namespace

Network network_of(const ModelSpec& spec, const std::string& prefix) {
  Network network = NetworkBuilder(spec, prefix).build();
  number_products(spec, prefix, network);
  return network;
}

Result<Network> checked_network(const ModelSpec& spec, const Checkpoint& checkpoint) {
  if (spec.other_names) {
    ModelSpec other = spec;
    other.names = *std::exchange(other.other_names, std::nullopt);
    if (auto network = checked_network(other, checkpoint)) return network;
  }
  // Finds the prefix with which the first tensor exists. Without such a prefix, the first one is used, so
  // that the error names the usual tensor.
  const auto found = std::ranges::find_if(spec.names.prefixes, [&](const std::string& prefix) {
    const std::string& first = spec.inputs.image ? spec.names.encoder.patches : spec.names.embedding.tokens;
    return checkpoint.find(prefix + first + ".weight") != nullptr;
  });
  const std::string& prefix = found != spec.names.prefixes.end() ? *found : spec.names.prefixes[0];
  ModelSpec whole = spec;  // Checkpoints contain complete tensors.
  whole.shard = {};
  whole.stage = {};
  if (const std::string& bias = spec.names.logits_bias; !bias.empty() && checkpoint.find(bias) == nullptr)
    whole.logits.bias = false;  // a bias that the checkpoint does not contain is zero, so it is left out
  Network network = network_of(whole, prefix);
  TRY_VOID(check_slots(checkpoint, network.parameters().slots(), network.ignorable));
  network.plain = plain_format(network, checkpoint);
  if (spec.shard.expert_ranks() == 1 && spec.stage.count == 1) return network;
  Network part = network_of(spec, prefix);
  part.plain = network.plain;
  return part;
}

}  // namespace octavo
