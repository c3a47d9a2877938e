// What a checkpoint calls its tensors, and how it lays them out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// In which order the rows of a fused query/key/value matrix come.
enum class QkvOrder : std::uint8_t {
  by_kind,  // all queries, all keys, all values
  by_head,  // the queries of the first key head, this and its value, then those of the second ...
  values_by_head,  // all queries, then the first key and its value, the second ...
};

// How a checkpoint holds the matrices of experts.
enum class ExpertStorage : std::uint8_t {
  each,                // a tensor for each; '{}' in its name is the expert's number
  stacked,             // one tensor [experts, outputs, inputs]
  stacked_transposed,  // one tensor [experts, inputs, outputs]
  flat,                // one tensor [experts * hidden units, dim]
};

// What the checkpoint calls its tensors. '#' in the name of a layer's is LayerSpec::part. Layer names are relative to layers + number + "."; names of matrices
// come without ".weight" and ".bias". A list of names stands for matrices stacked by rows, in this order.
struct Names {
  std::vector<std::string> prefixes = {"model."};  // alternatives before every name but lm_head's
  std::string lm_head = "lm_head";                 // without a prefix before it
  std::string logits_bias = {};                    // a whole name; empty: lm_head + ".bias"
  std::string embedding = "embed_tokens";
  std::string positions = {};
  std::string token_types = {};
  std::string embedding_norm = {};
  std::string final_norm = "norm";
  std::string layers = "layers.";
  std::string only_layer = {};  // of networks of one layer: in place of layers + number + "."

  std::string attention_norm = "input_layernorm";  // empty: the mixers have none
  std::string attention_post_norm = {};
  std::string mlp_norm = "post_attention_layernorm";
  std::string mlp_post_norm = {};
  std::string cross_norm = {};
  std::string cross_post_norm = {};
  std::string q_norm =
      "self_attn.q_norm";  // for each head: '{}' is its number; without it, they are one tensor
  std::string k_norm = "self_attn.k_norm";
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  std::string out = "self_attn.o_proj";
  std::string head_gate = "self_attn.g_proj";
  std::vector<std::string> up = {"mlp.gate_proj", "mlp.up_proj"};  // the gate first
  std::string down = "mlp.down_proj";
  std::vector<std::string> slopes = {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"};  // of xielu
  std::string sinks = "self_attn.sinks";
  std::string distance_bias = {};  // a whole name
  std::string layer_scale = "layer_scalar";

  std::string layer_input_table = "embed_tokens_per_layer";
  std::string layer_input_projection = "per_layer_model_projection";
  std::string layer_input_norm = "per_layer_projection_norm";
  std::string layer_input_gate = "per_layer_input_gate";
  std::string layer_input_out = "per_layer_projection";
  std::string layer_input_post_norm = "post_per_layer_input_norm";

  // '{}': the stream's number; without it, a stack of all; these two: of Streams.
  std::string stream_in = "altup_projections.{}";
  std::string stream_out = "altup_unembed_projections.{}";
  std::string streams =
      "altup.";  // what stands before the names of a layer's tensors, of these and the three below
  std::string laurel = "laurel.";
  std::string kimi = "self_attn.";
  std::string lightning_in = "self_attn.qkv_proj";
  QkvOrder lightning_order = QkvOrder::by_head;
  std::string lightning_gate = "self_attn.output_gate";
  std::string lightning_norm = "self_attn.norm";
  std::string lightning_out = "self_attn.out_proj";

  std::string cross_q = {};
  std::vector<std::string> cross_kv = {};
  std::string cross_out = {};

  std::string latent_q = "self_attn.q_proj";
  std::string latent_q_down = "self_attn.q_a_proj";
  std::string latent_q_norm = "self_attn.q_a_layernorm";
  std::string latent_q_up = "self_attn.q_b_proj";
  std::string latent_down = "self_attn.kv_a_proj_with_mqa";
  std::string latent_norm = "self_attn.kv_a_layernorm";
  std::string latent_up = "self_attn.kv_b_proj";
  // Its halves, in place of it: stacks [heads, kv_rank, nope_dim] and [heads, value_dim, kv_rank].
  std::string latent_up_key = {};
  std::string latent_up_value = {};
  std::string indexer = "self_attn.indexer.";  // what stands before the names of an indexer's tensors

  // Queries, keys and values, then gates: in two tensors, in four, or in one key head by key head. ba likewise.
  std::vector<std::string> delta_in = {"linear_attn.in_proj_qkv", "linear_attn.in_proj_z"};
  std::vector<std::string> delta_ba = {"linear_attn.in_proj_b", "linear_attn.in_proj_a"};
  std::vector<std::string> delta_conv = {"linear_attn.conv1d"};  // or of queries, of keys and of values
  std::string delta_a_log = "linear_attn.A_log";
  bool delta_rates = false;  // delta_a_log holds -exp of what it is
  std::string delta_dt_bias = "linear_attn.dt_bias";
  std::string delta_norm = "linear_attn.norm";
  std::string delta_out = "linear_attn.out_proj";

  std::string conv_in = "conv.in_proj";
  std::string conv = "conv.conv";
  std::string conv_out = "conv.out_proj";

  std::string mamba = "mamba.";  // what stands before the names of Mamba's tensors

  std::string compressed = "attn.";  // what stands before the names of compressed attention's tensors
  // And before those of hyper-connections: of a layer's mixer, of its feed-forward, and, without a layer, at the end.
  std::string mixer_streams = "hc_attn_";
  std::string feed_forward_streams = "hc_ffn_";
  std::string output_streams = "hc_head_";

  std::string time_mix = "attn.";  // what stands before the names of its tensors
  std::vector<std::string> time_shares = {"attn.x_r", "attn.x_w", "attn.x_k",
                                          "attn.x_v", "attn.x_a", "attn.x_g"};
  std::string channel_shares = "ffn.x_k";

  std::string router = "mlp.gate";
  std::string router_norm = {};  // these two are whole names
  std::string expert_scales = {};
  std::string choice_bias = "mlp.gate.e_score_correction_bias";
  bool choice_bias_row = false;  // stored [1, experts]
  std::string expert_table = {};  // a whole name: of Experts::vocab
  bool gguf = false;             // what comes behind a prefix for several tensors is as in GGUF files
  ExpertStorage expert_storage = ExpertStorage::each;
  std::vector<std::string> expert_up = {"mlp.experts.{}.gate_proj", "mlp.experts.{}.up_proj"};
  std::string expert_down = "mlp.experts.{}.down_proj";
  std::vector<std::string> expert_up_bias = {};  // [experts, outputs]
  std::string expert_down_bias = {};
  std::string expert_sum_bias = {};  // of Experts::sum_bias
  bool expert_interleaved = false;  // rows of gate and up take turns
  std::string expert_latent = {};  // these two: of Experts::latent
  std::string expert_lift = {};
  std::vector<std::string> shared_up = {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"};
  std::string shared_down = "mlp.shared_expert.down_proj";
  std::string shared_gate = "mlp.shared_expert_gate";
  std::string experts_norm = {};  // these three: of MlpAndExperts
  std::string experts_post_norm = {};
  std::string beside_experts_post_norm = {};

  std::string token_norm = {};  // these three: of HiddenInput
  std::string hidden_norm = {};
  std::string joint = {};

  std::string patches = {};  // of encoders of images
  std::string class_token = {};
  // Vectors that what comes out of an encoder is multiplied by, and that are taken from it before; whole
  // names.
  std::string standard_scale = {};
  std::string standard_bias = {};
  std::string newline = {};                    // of ImageInput::tiled, without a prefix before it
  std::string separator = {};                  // of ImageInput::whole_last, likewise
  std::vector<std::string> convolutions = {};  // of encoders of sound
  bool stacked_tables =
      false;  // class token and positions are stored [1, rows, dim], under their names alone
  std::vector<std::string> projector =
      {};  // its matrices in their order; these five without a prefix before them
  std::string projector_norm = {};
  std::string projector_merger = {};              // of Projector::merged
  std::vector<std::string> deep_projectors = {};  // likewise of each of ImageInput::deep_layers: '{}' is its
  std::string deep_projector_norms = {};          // number among them
  // Vectors by which the rows of `out` and `down`, with their biases, are multiplied; empty: there are none.
  // LayerScale: Touvron et al., "Going deeper with Image Transformers", 2021.
  std::string out_scale = {};
  std::string down_scale = {};

  // Matrices called x.linear have bounds of what they take and make beside them, x.input_min and so on.
  bool bounded = false;

  QkvOrder qkv_order = QkvOrder::by_kind;
  bool up_first = false;    // a fused matrix of gate and up has the rows of up first
  bool transposed = false;  // the layers' matrices are stored [inputs, outputs]
  // Tensors that may be there and are not needed; '*' at one end.
  std::vector<std::string> ignorable = {"*.rotary_emb.inv_freq"};

  // A tensor behind `prefix`, by its usual name and by the one that it has in GGUF files.
  std::string behind(const std::string& prefix, const char* usual, const char* in_gguf) const {
    return prefix + (gguf ? in_gguf : usual);
  }
};

}  // namespace octavo
