// T5 (Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
// 2020): an encoder of prompts, and a decoder whose layers have cross attention to the encoder's rows between
// self-attention and MLP. Instead of positions, scores have a bias for each distance. Scores are not scaled.
// T5 1.1 and Flan-T5 (Chung et al., 2022) have gated MLPs and a separate output matrix. The encoder without
// the decoder is an embedding model (Ni et al., "Sentence-T5", 2021).
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

constexpr Config::Range kBuckets{4, 1024}, kFurthest{8, 1 << 16};
constexpr std::string_view kBiasName = "block.0.layer.0.SelfAttention.relative_attention_bias.weight";

Names t5_names(const std::string& half, const std::string& mlp, bool gated) {
  const auto of = [](const std::string& layer, std::initializer_list<const char*> matrices) {
    std::vector<std::string> names;
    for (const char* matrix : matrices) names.push_back(layer + matrix);
    return names;
  };
  Names names;
  names.prefixes = {""};
  names.embedding.tokens = "shared";
  names.layers = half + "block.";
  names.final_norm = half + "final_layer_norm";
  names.attention.distance_bias = half + std::string(kBiasName);
  names.attention.norm = "layer.0.layer_norm";
  names.attention.qkv = of("layer.0.SelfAttention.", {"q", "k", "v"});
  names.attention.out = "layer.0.SelfAttention.o";
  names.of<CrossAttention>().norm = "layer.1.layer_norm";
  names.of<CrossAttention>().q = "layer.1.EncDecAttention.q";
  names.of<CrossAttention>().kv = of("layer.1.EncDecAttention.", {"k", "v"});
  names.of<CrossAttention>().out = "layer.1.EncDecAttention.o";
  names.mlp.norm = mlp + "layer_norm";
  names.mlp.up = gated ? of(mlp + "DenseReluDense.", {"wi_0", "wi_1"}) : of(mlp + "DenseReluDense.", {"wi"});
  names.mlp.down = mlp + "DenseReluDense.wo";
  return names;
}

// The field is "relu", or "gated-" and an activation. "gated-gelu" means the tanh approximation.
Result<> set_mlp(const Config& config, Mlp& mlp) {
  TRY(const std::string kind, config.text("feed_forward_proj"));
  mlp.gated = kind.starts_with("gated-");
  if (kind == "relu" || kind == "gated-relu") {
    mlp.activation = Activation::relu;
  } else if (kind == "gated-gelu" || kind == "gelu_new" || kind == "gated-gelu_new") {
    mlp.activation = Activation::gelu_tanh;
  } else if (kind == "silu" || kind == "gated-silu") {
    mlp.activation = Activation::silu;
  } else {
    return field_failure("feed_forward_proj", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be relu, gelu_new, silu, one of these "
                         "after gated-, or gated-gelu",
                         config.where("feed_forward_proj"), kind);
  }
  return {};
}

Result<ModelSpec> describe_half(const Config& config, std::string_view layers, bool causal) {
  TRY(ModelSpec spec, describe_dense(config, {.dim = "d_model",
                                              .layers = layers,
                                              .heads = "num_heads",
                                              .kv_heads = "num_heads",
                                              .hidden = "d_ff",
                                              .head_dim = "d_kv",
                                              .positions = "n_positions",
                                              .activation = "",
                                              .eps = "layer_norm_epsilon",
                                              .rotary = false}));
  DistanceBias bias;
  TRY(bias.buckets, config.integer("relative_attention_num_buckets", kBuckets));
  TRY(bias.furthest, config.integer("relative_attention_max_distance", kFurthest));
  if (bias.buckets % 4 != 0 || bias.furthest <= bias.buckets / 2)
    return invalid("relative_attention_num_buckets",
                   "{} is {}, but must be a multiple of 4, and half of it must be below {}",
                   config.where("relative_attention_num_buckets"), bias.buckets, bias.furthest);
  Mlp mlp = spec.layers[0].mlp();
  TRY_VOID(set_mlp(config, mlp));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().scores.scale = 1;
    layer.attention().mask.causal = causal;
    layer.attention().scores.distance_bias = bias;
    layer.mlp() = mlp;
  }
  return spec;
}

void name_encoder(ModelSpec& spec) {
  spec.logits.tied = true;  // the encoder has no output matrix
  spec.names = t5_names("encoder.", "layer.1.", spec.layers[0].mlp().gated);
  spec.names.ignorable = {"decoder.*", "encoder.embed_tokens.weight"};
}

}  // namespace

static Result<ModelSpec> describe_t5_encoder(const Config& config) {
  TRY(ModelSpec spec, describe_half(config, "num_layers", false));
  name_encoder(spec);
  spec.names.ignorable.emplace_back("lm_head.weight");
  spec.head = Head{.pool = Pool::mean, .normalise = true};
  return spec;
}

static Result<ModelSpec> describe_t5(const Config& config) {
  const bool own_depth = config.has("num_decoder_layers");
  TRY(ModelSpec spec, describe_half(config, own_depth ? "num_decoder_layers" : "num_layers", true));
  TRY(ModelSpec tower, describe_half(config, "num_layers", false));
  TRY(const bool tied, config.boolean("tie_word_embeddings", true));
  TRY(const bool scaled, config.boolean("scale_decoder_outputs", tied));
  if (scaled) spec.logits.scale = 1 / std::sqrt(static_cast<float>(spec.dim));
  const Attention& own = spec.layers[0].attention();
  for (LayerSpec& layer : spec.layers)
    layer.cross = CrossAttention{.heads = own.q_heads, .head_dim = own.head_dim, .scale = 1, .bias = false};
  TRY(tower.inputs.source, read_source(config, tower));
  const bool gated = spec.layers[0].mlp().gated;
  // The output matrix is separate if the checkpoint contains one. The field in config.json is ignored.
  spec.logits.tied = false;
  spec.names = t5_names("decoder.", "layer.2.", gated);
  spec.names.ignorable = {"encoder.*", "decoder.embed_tokens.weight",
                          "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};
  spec.other_names = spec.names;
  spec.names.lm_head = spec.names.embedding.tokens;
  name_encoder(tower);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> t5_families() {
  static constexpr Family kRows[] = {
      {"T5EncoderModel", describe_t5_encoder},
      {"T5ForConditionalGeneration", describe_t5},
  };
  return kRows;
}

}  // namespace octavo
