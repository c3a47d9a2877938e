#include "model/shard.h"

#include <string_view>

namespace octavo {
namespace {

constexpr std::string_view kField = "tensor_parallel_size";

Result<> refused(std::string_view what) {
  return field_failure(kField, ErrorCode::unsupported, "must be 1 for models with {}", what);
}

Result<> divides(const Shard& shard, std::int64_t number, std::string_view what) {
  if (number % shard.size == 0) return {};
  return invalid(kField, "is {}, which does not divide {} {}", shard.size, number, what);
}

Result<> check(const Shard&, std::monostate) { return {}; }
Result<> check(const Shard&, const LatentAttention&) { return refused("latent attention"); }
Result<> check(const Shard&, const DeltaNet&) { return refused("recurrent layers"); }
Result<> check(const Shard&, const KimiDelta&) { return refused("recurrent layers"); }
Result<> check(const Shard&, const LightningAttention&) { return refused("recurrent layers"); }
Result<> check(const Shard&, const Laurel&) { return refused("second paths beside attention"); }
Result<> check(const Shard&, const ShortConv&) { return refused("recurrent layers"); }
Result<> check(const Shard&, const Mamba2&) { return refused("recurrent layers"); }
Result<> check(const Shard&, const Mamba&) { return refused("recurrent layers"); }
Result<> check(const Shard&, const Experts&) { return refused("experts"); }
Result<> check(const Shard& shard, const Mlp& mlp) { return divides(shard, mlp.hidden, "hidden units"); }

Result<> check(const Shard& shard, const Attention& a) {
  if (a.qk_norm == QkNorm::whole_row) return refused("norms over the queries of all heads");
  if (a.qk_norm == QkNorm::per_head) return refused("norm weights for each head");
  if (a.sinks) return refused("attention sinks");
  if (a.output_gate) return refused("gated attention");
  if (a.source >= 0 || a.keys_are_values) return refused("keys and values that are shared");
  TRY_VOID(divides(shard, a.q_heads, "query heads"));
  return shard.size % a.kv_heads == 0 ? Result<>() : divides(shard, a.kv_heads, "key heads");
}

}  // namespace

Result<> check_shard(const ModelSpec& spec) {
  if (spec.shard.size == 1) return {};
  if (spec.layer_inputs) return refused("inputs of layers");
  if (spec.streams) return refused("several residuals");
  if (spec.hears()) return refused("cross attention");
  if (spec.head) return refused("a head (embeddings, rerankers)");
  if (spec.learned_positions > 0) return refused("learned positions");
  if (spec.token_types > 0) return refused("token types");
  if (spec.names.transposed) return refused("transposed matrices");
  if (spec.names.qkv_order == QkvOrder::by_head) return refused("queries, keys and values stored head by head");
  TRY_VOID(divides(spec.shard, spec.vocab, "tokens of the vocabulary"));
  for (const LayerSpec& layer : spec.layers) {
    const auto half = [&](const auto& kind) { return check(spec.shard, kind); };
    TRY_VOID(std::visit(half, layer.mixer));
    TRY_VOID(std::visit(half, layer.second_mixer));
    TRY_VOID(std::visit(half, layer.feed_forward));
  }
  return {};
}

}  // namespace octavo
