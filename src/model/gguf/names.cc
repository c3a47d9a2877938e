#include "model/gguf/names.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace octavo {

Names gguf_names(const ModelSpec& spec, const Gguf& gguf, const GgufLayers& layers) {
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  const bool rwkv = layers.have("time_mix_lerp_fused.weight");  // whose second norm is the MLP's
  const bool lightning = std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
    return std::holds_alternative<LightningAttention>(layer.mixer);  // which has a second norm inside
  });
  const bool two_norms = layers.have("attn_norm_2.weight") && !rwkv && !lightning;
  // Falcon's norm of attention came later, and Seed-OSS calls its second one by its place.
  const auto* mlp_norm = rwkv                                        ? "attn_norm_2"
                         : two_norms                                 ? "attn_norm"
                         : layers.have("ffn_norm.weight")            ? "ffn_norm"
                         : layers.have("post_attention_norm.weight") ? "post_attention_norm"
                         : layers.have("attn_output_norm.weight")    ? "attn_output_norm"  // DBRX
                                                                     : "attn_norm";  // layers of one half
  const bool fused_experts = layers.have("ffn_gate_up_exps.weight");
  const bool hybrid = layers.have("ssm_a") || lightning;  // whose fused projections are not attention's
  const bool halves = layers.have("attn_k_b.weight");
  const bool gates = layers.have("attn_gate.weight");
  const bool head_gates = gates && std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
                            const auto* attention = std::get_if<Attention>(&layer.mixer);
                            return attention != nullptr && attention->head_gate;
                          });
  return {
      .prefixes = {""},
      .lm_head = "output",
      .embedding = "token_embd",
      .positions = "position_embd",
      .token_types = "token_types",
      .embedding_norm = "token_embd_norm",
      .final_norm =
          gguf.find("output_norm.weight") != nullptr ? "output_norm" : "token_embd_norm",  // the second: LFM2
      .layers = "blk.",
      .attention_norm = two_norms ? "attn_norm_2" : "attn_norm",
      .attention_post_norm =
          layers.have("attn_output_norm.weight") ? "attn_output_norm" : "post_attention_norm",
      .mlp_norm = mlp_norm,
      .mlp_post_norm = layers.have("layer_output_norm.weight") ? "layer_output_norm" : "post_ffw_norm",
      .q_norm = "attn_q_norm",
      .k_norm = "attn_k_norm",
      .qkv = layers.have("attn_qkv.weight") && !hybrid ? list("attn_qkv")
             : gates && !head_gates && !hybrid         ? list("attn_q", "attn_k", "attn_v", "attn_gate")
                                                       : list("attn_q", "attn_k", "attn_v"),
      .out = "attn_output",
      .head_gate = "attn_gate",
      .up = rwkv                             ? list("channel_mix_key")
            : layers.have("ffn_gate.weight") ? list("ffn_gate", "ffn_up")
                                             : list("ffn_up"),
      .down = rwkv ? "channel_mix_value" : "ffn_down",
      .sinks = "attn_sinks.weight",
      .layer_scale = "layer_output_scale.weight",
      .layer_input_table = "per_layer_token_embd",
      .layer_input_projection = "per_layer_model_proj",
      .layer_input_norm = "per_layer_proj_norm",
      .layer_input_gate = "inp_gate",
      .layer_input_out = "proj",
      .layer_input_post_norm = "post_norm",
      .stream_in = "altup_proj",
      .stream_out = "altup_unembd_proj",
      .streams = "altup_",
      .laurel = "laurel_",
      .kimi = "",
      .lightning_in = "attn_qkv",
      .lightning_gate = "attn_gate",
      .lightning_norm = "attn_norm_2",
      .lightning_out = "attn_output",
      .latent_q = "attn_q",
      .latent_q_down = "attn_q_a",
      .latent_q_norm = "attn_q_a_norm",
      .latent_q_up = "attn_q_b",
      .latent_down = "attn_kv_a_mqa",
      .latent_norm = "attn_kv_a_norm",
      .latent_up = "attn_kv_b",
      .latent_up_key = halves ? "attn_k_b" : "",
      .latent_up_value = halves ? "attn_v_b" : "",
      .indexer = "indexer.",
      .delta_in = layers.have("ssm_in.weight") ? list("ssm_in") : list("attn_qkv", "attn_gate"),
      .delta_ba = layers.have("ssm_ba.weight") ? list("ssm_ba") : list("ssm_beta", "ssm_alpha"),
      .delta_conv = list("ssm_conv1d"),
      .delta_a_log = "ssm_a",
      .delta_rates = true,
      .delta_dt_bias = "ssm_dt.bias",
      .delta_norm = "ssm_norm",
      .delta_out = "ssm_out",
      .conv_in = "shortconv.in_proj",
      .conv = "shortconv.conv",
      .conv_out = "shortconv.out_proj",
      .mamba = "ssm_",
      .compressed = "",
      .output_streams = "output_hc_",
      .time_mix = "time_mix_",
      .time_shares = list("time_mix_lerp_fused.weight"),
      .channel_shares = "channel_mix_lerp_k.weight",
      .router = "ffn_gate_inp",
      .router_norm = "ffn_gate_inp.scale",
      .expert_scales = "ffn_down_exps.scale",
      .choice_bias = "exp_probs_b.bias",
      .expert_table = "ffn_gate_tid2eid.weight",
      .gguf = true,
      .expert_storage = ExpertStorage::stacked,
      .expert_up = fused_experts                         ? list("ffn_gate_up_exps.weight")
                   : layers.have("ffn_gate_exps.weight") ? list("ffn_gate_exps.weight", "ffn_up_exps.weight")
                                                         : list("ffn_up_exps.weight"),
      .expert_down = "ffn_down_exps.weight",
      .expert_up_bias = list("ffn_gate_exps.bias", "ffn_up_exps.bias"),
      .expert_down_bias = "ffn_down_exps.bias",
      .expert_latent = "ffn_latent_down",
      .expert_lift = "ffn_latent_up",
      .shared_up = layers.have("ffn_gate_shexp.weight") ? list("ffn_gate_shexp", "ffn_up_shexp")
                                                        : list("ffn_up_shexp"),
      .shared_down = "ffn_down_shexp",
      .shared_gate = "ffn_gate_inp_shexp",
      .experts_norm = "pre_ffw_norm_2",
      .experts_post_norm = "post_ffw_norm_2",
      .beside_experts_post_norm = "post_ffw_norm_1",
      .ignorable = {"rope_freqs.weight", "rope_factors_*", "*.attn_rot_embd.weight"},
  };
}

Names gguf_half_names(const std::string& half, const Gguf& gguf) {
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  const bool gated = gguf.find(half + "blk.0.ffn_gate.weight") != nullptr;
  return {
      .prefixes = {""},
      .lm_head = gguf.find("output.weight") != nullptr ? "output" : "token_embd",
      .embedding = "token_embd",
      .final_norm = half + "output_norm",
      .layers = half + "blk.",
      .attention_norm = "attn_norm",
      .mlp_norm = "ffn_norm",
      .cross_norm = "cross_attn_norm",
      .qkv = list("attn_q", "attn_k", "attn_v"),
      .out = "attn_o",
      .up = gated ? list("ffn_gate", "ffn_up") : list("ffn_up"),
      .down = "ffn_down",
      .distance_bias = half + "blk.0.attn_rel_b.weight",
      .cross_q = "cross_attn_q",
      .cross_kv = list("cross_attn_k", "cross_attn_v"),
      .cross_out = "cross_attn_o",
  };
}

}  // namespace octavo
