#include "model/gguf/names.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace octavo {

Names gguf_names(const ModelSpec& spec, const Gguf& gguf, const GgufLayers& layers) {
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  // true: RWKV-7, in which the second norm belongs to the MLP
  const bool rwkv = layers.have("time_mix_lerp_fused.weight");
  const bool lightning = std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
    // Lightning attention has a norm inside, whose tensor has the name of a second attention norm.
    return std::holds_alternative<LightningAttention>(layer.mixer);
  });
  const bool two_norms = layers.have("attn_norm_2.weight") && !rwkv && !lightning;
  // In Falcon's files, the norm of attention was added later, so attn_norm belongs to the MLP. In Seed-OSS,
  // the second norm is named after its position. attn_output_norm is DBRX's. Without any of these, layers
  // have only one half.
  const auto* mlp_norm = rwkv                                        ? "attn_norm_2"
                         : two_norms                                 ? "attn_norm"
                         : layers.have("ffn_norm.weight")            ? "ffn_norm"
                         : layers.have("post_attention_norm.weight") ? "post_attention_norm"
                         : layers.have("attn_output_norm.weight")    ? "attn_output_norm"
                                                                     : "attn_norm";
  // Hybrid networks use the name of fused attention projections for their recurrent layers.
  const bool hybrid = layers.have("ssm_a") || lightning;
  const bool gates = layers.have("attn_gate.weight");
  const bool head_gates = gates && std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
                            const auto* attention = std::get_if<Attention>(&layer.mixer);
                            return attention != nullptr && attention->head_gate;
                          });
  Names names;
  names.kinds.each([&]<class Own>(Own& own) {
    if constexpr (requires { Own::of_gguf(layers); }) own = Own::of_gguf(layers);
  });
  names.prefixes = {""};
  names.lm_head = "output";
  names.embedding.tokens = "token_embd";
  names.embedding.positions = "position_embd";
  names.embedding.token_types = "token_types";
  names.embedding.norm = "token_embd_norm";
  names.final_norm = gguf.find("output_norm.weight") != nullptr ? "output_norm" : "token_embd_norm";
  names.layers = "blk.";
  names.attention.norm = two_norms ? "attn_norm_2" : "attn_norm";
  names.attention.post_norm =
      layers.have("attn_output_norm.weight") ? "attn_output_norm" : "post_attention_norm";
  names.mlp.norm = mlp_norm;
  names.mlp.post_norm = layers.have("layer_output_norm.weight") ? "layer_output_norm" : "post_ffw_norm";
  names.attention.q_norm = "attn_q_norm";
  names.attention.k_norm = "attn_k_norm";
  names.attention.qkv = layers.have("attn_qkv.weight") && !hybrid ? list("attn_qkv")
                        : gates && !head_gates && !hybrid ? list("attn_q", "attn_k", "attn_v", "attn_gate")
                                                          : list("attn_q", "attn_k", "attn_v");
  names.attention.out = "attn_output";
  names.attention.head_gate = "attn_gate";
  names.mlp.up = rwkv                             ? list("channel_mix_key")
                 : layers.have("ffn_gate.weight") ? list("ffn_gate", "ffn_up")
                                                  : list("ffn_up");
  names.mlp.down = rwkv ? "channel_mix_value" : "ffn_down";
  names.attention.sinks = "attn_sinks.weight";
  names.layer_scale = "layer_output_scale.weight";
  names.gguf = true;
  names.ignorable = {"rope_freqs.weight", "rope_factors_*", "*.attn_rot_embd.weight"};
  return names;
}

Names gguf_half_names(const std::string& half, const Gguf& gguf) {
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  const bool gated = gguf.find(half + "blk.0.ffn_gate.weight") != nullptr;
  Names names;
  names.prefixes = {""};
  names.lm_head = gguf.find("output.weight") != nullptr ? "output" : "token_embd";
  names.embedding.tokens = "token_embd";
  names.final_norm = half + "output_norm";
  names.layers = half + "blk.";
  names.attention.norm = "attn_norm";
  names.mlp.norm = "ffn_norm";
  names.of<CrossAttention>().norm = "cross_attn_norm";
  names.attention.qkv = list("attn_q", "attn_k", "attn_v");
  names.attention.out = "attn_o";
  names.mlp.up = gated ? list("ffn_gate", "ffn_up") : list("ffn_up");
  names.mlp.down = "ffn_down";
  names.attention.distance_bias = half + "blk.0.attn_rel_b.weight";
  names.of<CrossAttention>().q = "cross_attn_q";
  names.of<CrossAttention>().kv = list("cross_attn_k", "cross_attn_v");
  names.of<CrossAttention>().out = "cross_attn_o";
  return names;
}

}  // namespace octavo
