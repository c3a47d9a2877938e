#include "model/shard.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "model/network.h"

namespace octavo {
namespace {

constexpr std::string_view kShardField = "tensor_parallel_size";

Result<> refused(std::string_view what) {
  return field_failure(kShardField, ErrorCode::unsupported, "must be 1 for models with {}", what);
}

Result<> divides(const Shard& shard, std::int64_t number, std::string_view what) {
  if (number % shard.size == 0) return {};
  return invalid(kShardField, "is {}, which does not divide {} {}", shard.size, number, what);
}

Result<> check(const Shard&, std::monostate) { return {}; }
Result<> check(const Shard&, const KimiDelta&) { return refused("Kimi delta attention"); }
Result<> check(const Shard&, const LightningAttention&) { return refused("lightning attention"); }
Result<> check(const Shard&, const Laurel&) { return refused("second paths beside attention"); }
Result<> check(const Shard&, const ShortConv&) { return {}; }  // see check_shard
Result<> check(const Shard& shard, const LatentAttention& a) { return divides(shard, a.heads, "heads"); }
Result<> check(const Shard& shard, const CompressedAttention& a) {
  return divides(shard, a.out_groups, "groups of heads");
}
Result<> check(const Shard& shard, const DeltaNet& net) { return divides(shard, net.key_heads, "key heads"); }
Result<> check(const Shard& shard, const Mamba2& m) { return divides(shard, m.groups, "groups of Mamba2 heads"); }
Result<> check(const Shard&, const Mamba&) { return refused("Mamba layers"); }
Result<> check(const Shard&, const TimeMix&) { return refused("time mixing"); }
Result<> check(const Shard&, const ChannelMix&) { return refused("channel mixing"); }
Result<> check(const Shard& shard, const Mlp& mlp) { return divides(shard, mlp.hidden, "hidden units"); }
Result<> check(const Shard& shard, const Experts& experts) {
  if (experts.shared) TRY_VOID(check(shard, *experts.shared));
  if (shard.whole_experts) {
    if (experts.identities > 0) return refused("experts that do nothing, with --enable-expert-parallel");
    if (experts.count < shard.size)
      return invalid(kShardField, "is {}, the model has {} experts", shard.size, experts.count);
    if (const int most = experts.count * (shard.size - 1); shard.redundant_experts > most)
      return invalid("eplb_config", "num_redundant_experts is {}, {} experts on {} ranks can have {}",
                     shard.redundant_experts, experts.count, shard.size, most);
    return {};
  }
  const std::int64_t hidden = experts.expert.hidden;
  return shard.together(hidden) > 1 ? Result<>() : divides(shard, hidden, "hidden units of an expert");
}

Result<> check(const Shard&, const MlpAndExperts&) { return refused("experts beside a dense MLP"); }

Result<> check(const Shard& shard, const Attention& a) {
  if (a.qk_norm == QkNorm::whole_row && a.qk_norm_spec.kind != NormKind::rms)
    return refused("norms over the queries of all heads that are not RMS norms");
  if (a.q_rank > 0) return refused("queries of a latent in plain attention");
  if (a.source >= 0 || a.keys_are_values) return refused("keys and values that are shared");
  TRY_VOID(divides(shard, a.q_heads, "query heads"));
  return shard.size % a.kv_heads == 0 ? Result<>() : divides(shard, a.kv_heads, "key heads");
}

}  // namespace

Result<> check_shard(const ModelSpec& spec) {
  if (spec.shard.size == 1) return {};
  if (spec.layer_inputs) return refused("inputs of layers");
  if (spec.streams) return refused("several residuals");
  if (spec.has_cross()) return refused("cross attention");
  const auto has_experts = [](const LayerSpec& layer) { return std::holds_alternative<Experts>(layer.feed_forward); };
  if (!spec.shard.whole_experts && spec.names.expert_storage == ExpertStorage::flat &&
      std::ranges::any_of(spec.layers, has_experts))
    return refused("experts stored in one matrix, unless --enable-expert-parallel keeps them whole");
  for (const LayerSpec& layer : spec.layers) {
    if (layer.shared) return refused("layers that share attention and MLP");
    if (std::holds_alternative<ShortConv>(layer.mixer)) TRY_VOID(divides(spec.shard, spec.dim, "channels"));
    const auto half = [&](const auto& kind) { return check(spec.shard, kind); };
    TRY_VOID(std::visit(half, layer.mixer));
    TRY_VOID(std::visit(half, layer.second_mixer));
    TRY_VOID(std::visit(half, layer.feed_forward));
    if (layer.shortcut) TRY_VOID(check(spec.shard, *layer.shortcut));
  }
  return {};
}

Result<std::vector<Stage>> divide_layers(const ModelSpec& spec, int stages) {
  constexpr std::string_view kStages = "pipeline_parallel_size";
  const int layers = static_cast<int>(spec.layers.size());
  if (stages > layers) return invalid(kStages, "is {}, the model has {} layers", stages, layers);
  if (stages > 1 && (spec.tower || spec.head))
    return field_failure(kStages, ErrorCode::unsupported, "must be 1 for models with {}",
                         spec.head ? "a head (embeddings, rerankers)" : "encoders of images or sound");
  const auto reads_another = [](const LayerSpec& layer) {
    const auto* attention = std::get_if<Attention>(&layer.mixer);
    const auto* latent = std::get_if<LatentAttention>(&layer.mixer);
    return layer.shared || layer.shortcut || layer.blend || std::holds_alternative<TimeMix>(layer.mixer) ||
           (attention != nullptr && attention->source >= 0) ||
           (latent != nullptr && latent->indexer && latent->indexer->heads == 0);
  };
  if (stages > 1 &&
      (spec.layer_inputs || spec.streams || std::ranges::any_of(spec.layers, reads_another)))
    return field_failure(
        kStages, ErrorCode::unsupported,
        "must be 1 for models whose layers share matrices, keys, values, residuals or choices of tokens, or have several "
        "residuals or inputs of their own");
  ModelSpec whole = spec;  // the same for all ranks
  whole.shard = {};
  whole.stage = {};
  Network network = network_of(whole);
  std::vector<double> begins(static_cast<std::size_t>(layers) + 1);  // numbers in front of each layer
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
    // Up to the layer that begins nearest to where the next stage should; every stage has one at least.
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
