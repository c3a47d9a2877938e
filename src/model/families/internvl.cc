// InternVL 2.5, 3 and 3.5 (Chen et al., 2024; Zhu et al., 2025; Wang et al., 2025) in transformers' format:
// an encoder of square tiles with LayerScale, a projector with pixel shuffle, a norm and two matrices, and a
// Qwen2, Qwen3 or Llama.
#include <cmath>

#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/internvl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The last two fields are required by the reader of the config, but the encoder does not use them.
constexpr std::string_view kInternvlVision = R"({"attention_bias": false,
    "hidden_act": "gelu",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "layer_norm_eps": 1e-06,
    "norm_type": "layer_norm",
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 24,
    "use_absolute_position_embeddings": true,
    "use_mask_token": false,
    "use_mean_pooling": true,
    "use_qk_norm": false,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

// Reads a number, or a list of two equal numbers.
Result<int> side_of(const Config& config, std::string_view field, Config::Range range, int absent) {
  if (!config.is_list(field)) return config.integer(field, range, absent);
  TRY(const std::vector<int> both, config.integers(field, range));
  if (both.size() != 2 || both[0] != both[1])
    return invalid(field, "{} must be a number or two equal numbers", config.where(field));
  return both[0];
}

Result<NormSpec> read_norm(const Config& config) {
  TRY(const std::string kind, config.text("norm_type"));
  TRY(const double eps, config.number("layer_norm_eps", {0, 1}));
  if (kind == "layer_norm")
    return NormSpec{.kind = NormKind::layer, .eps = static_cast<float>(eps), .bias = true};
  if (kind == "rms_norm") return NormSpec{.kind = NormKind::rms, .eps = static_cast<float>(eps)};
  return field_failure("norm_type", ErrorCode::unsupported,
                       "{} is \"{}\", which is not supported: must be layer_norm or rms_norm",
                       config.where("norm_type"), kind);
}

Result<> set_internvl_layers(ModelSpec& spec, const Config& config) {
  TRY(const bool bias, config.boolean("attention_bias"));
  TRY(const bool normed, config.boolean("use_qk_norm"));
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    attention.mask.causal = false;
    attention.biases.qkv = bias;
    attention.biases.out = layer.mlp().up_bias = layer.mlp().down_bias = true;
    if (!normed) continue;
    attention.norms.qk_kind = QkNorm::whole_row;
    attention.norms.qk = {.kind = NormKind::rms, .eps = 1e-6F};
  }
  return set_activation(config, spec);
}

Result<> set_input(ModelSpec& spec, const Config& config) {
  ImageInput image{.classes = {.count = 1}};
  TRY(image.image_size, side_of(config, "image_size", {1, 4096}, 448));
  TRY(image.patch_size, side_of(config, "patch_size", {1, image.image_size}, 14));
  TRY_VOID(config.integer("num_channels", {3, 3}));
  TRY_VOID(refuse(config, "use_mask_token", true));
  TRY(const bool has_positions, config.boolean("use_absolute_position_embeddings"));
  if (!has_positions)
    return field_failure("use_absolute_position_embeddings", ErrorCode::unsupported,
                         "{} is false, but only true is supported",
                         config.where("use_absolute_position_embeddings"));
  const int side = image.image_size / image.patch_size;
  spec.embedding.learned_positions = spec.max_positions = side * side + 1;
  spec.inputs.image = image;
  return {};
}

Names internvl_tower_names() {
  Names names;
  names.encoder.patches = "embeddings.patch_embeddings.projection";
  names.encoder.class_token = "embeddings.cls_token";
  names.embedding.positions = "embeddings.position_embeddings";
  names.encoder.stacked_tables = true;
  names.layers = "encoder.layer.";
  names.attention.norm = "layernorm_before";
  names.mlp.norm = "layernorm_after";
  names.attention.qkv = {"attention.q_proj", "attention.k_proj", "attention.v_proj"};
  names.attention.q_norm = "attention.q_norm";
  names.attention.k_norm = "attention.k_norm";
  names.attention.out = "attention.projection_layer";
  names.attention.out_scale = "lambda_1";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.mlp.down_scale = "lambda_2";
  names.final_norm = "layernorm";
  return names;
}

// Names of the first format.
Names internvl_chat_names() {
  Names names = internvl_tower_names();
  names.encoder.patches = "embeddings.patch_embedding";
  names.encoder.class_token = "embeddings.class_embedding";
  names.embedding.positions = "embeddings.position_embedding";
  names.layers = "encoder.layers.";
  names.attention.norm = "norm1";
  names.mlp.norm = "norm2";
  names.attention.qkv = {"attn.qkv"};
  names.attention.q_norm = "attn.q_norm";
  names.attention.k_norm = "attn.k_norm";
  names.attention.out = "attn.proj";
  names.attention.out_scale = "ls1";
  names.mlp.down_scale = "ls2";
  set_mlp1_names(names, "vision_model.");
  return names;
}

// Adds a prefix to all names of the language model.
void put_under(Names& names, const std::string& prefix) {
  for (std::string& before : names.prefixes) before.insert(0, prefix);
  for (std::string& other : names.ignorable)
    if (!other.starts_with('*')) other.insert(0, prefix);
  names.lm_head.insert(0, prefix);
  for (const char* other : {"vision_model.*", "mlp1.*"}) names.ignorable.emplace_back(other);
}

void set_internvl_names(Names& names, const std::string& prefix) {
  const std::string projector = prefix + "multi_modal_projector.";
  names.prefixes = {prefix + "vision_tower."};
  names.projector.matrices = {projector + "linear_1", projector + "linear_2"};
  names.projector.norm = projector + "layer_norm";
  names.ignorable = {"language_model.*", "model.language_model.*", "lm_head.*"};
}

}  // namespace

Result<ModelSpec> describe_internvl_encoder(Config config) {
  config.set_defaults(kInternvlVision);
  TRY(const NormSpec norm, read_norm(config));
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .head_dim = "",
                                              .activation = "",
                                              .eps = "",
                                              .norm = norm,
                                              .rotary = false}));
  spec.vocab = 0;
  TRY_VOID(set_internvl_layers(spec, config));
  TRY_VOID(set_input(spec, config));
  TRY(const bool mean, config.boolean("use_mean_pooling"));
  spec.final_norm = mean ? NormSpec() : NormSpec{.kind = NormKind::layer, .eps = norm.eps, .bias = true};
  return spec;
}

Result<> set_internvl_projector(ModelSpec& tower, const Config& config, int out_dim) {
  TRY_VOID(config.integer("vision_feature_layer", {-1, -1}, -1));
  TRY(const std::string strategy, config.text("vision_feature_select_strategy", "default"));
  TRY(const std::string activation, config.text("projector_hidden_act", "gelu"));
  if (strategy != "default" || activation != "gelu")
    return field_failure("vision_feature_select_strategy", ErrorCode::unsupported,
                         "config.json: vision_feature_select_strategy \"{}\" with projector_hidden_act "
                         "\"{}\" is not supported: must be default and gelu",
                         strategy, activation);
  TRY(const double ratio, config.number("downsample_ratio", {1.0 / 64, 1}, 0.5));
  tower.inputs.image->merge = static_cast<int>(std::lround(1 / ratio));
  tower.inputs.image->out_dim = out_dim;
  tower.inputs.image->projector = {.norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true},
                                   .activation = Activation::gelu,
                                   .hidden = out_dim,
                                   .bias = true};
  return {};
}

void set_mlp1_names(Names& names, const std::string& tower) {
  names.prefixes = {tower};
  names.projector.matrices = {"mlp1.1", "mlp1.3"};
  names.projector.norm = "mlp1.0";
  names.ignorable = {"language_model.*"};
}

Result<> set_context_token(ModelSpec& spec, const Config& config, std::string_view text) {
  if (!config.has("img_context_token_id")) {
    spec.media.token_text = text;
    return {};
  }
  TRY(spec.media.token, config.integer("img_context_token_id", {0, kMaxVocab}));
  return {};
}

Result<ModelSpec> describe_inner_text(const Config& config, const std::string& prefix) {
  TRY(std::optional<Config> inner, config.object("llm_config"));
  if (!inner) {
    TRY(inner, config.object("text_config"));
  }
  if (!inner)
    return invalid("llm_config", "{} is missing, but must have the language model's configuration",
                   config.where("llm_config"));
  TRY(ModelSpec spec, describe(*inner));
  put_under(spec.names, prefix);
  if (spec.other_names) put_under(*spec.other_names, prefix);
  return spec;
}

static Result<ModelSpec> describe_internvl(const Config& config) {
  TRY(ModelSpec spec, describe_seeing_text(config));
  TRY_VOID(set_tied(spec, config));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 151667));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_internvl_encoder(vision.value_or(Config())));
  TRY_VOID(set_internvl_projector(tower, config, spec.dim));
  tower.names = internvl_tower_names();
  tower.other_names = tower.names;
  set_internvl_names(tower.names, "");
  set_internvl_names(*tower.other_names, "model.");
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

// Qianfan-OCR (Baidu, 2026): InternVL with the tensor names of its first format.
static Result<ModelSpec> describe_qianfan_ocr(const Config& config) {
  TRY(ModelSpec spec, describe_internvl(config));
  ModelSpec tower = *spec.media.tower;
  tower.other_names->ignorable.emplace_back("mlp1.*");
  tower.names = internvl_chat_names();
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  for (const char* other : {"vision_model.*", "mlp1.*"}) spec.names.ignorable.emplace_back(other);
  return spec;
}

namespace {

// Adds the encoder of the first format. `describe_vision` describes it from vision_config, with its names.
Result<ModelSpec> describe_chat(const Config& config, Result<ModelSpec> (*describe_vision)(const Config&)) {
  TRY(ModelSpec spec, describe_inner_text(config));
  TRY_VOID(support(config, "ps_version", "v2"));
  TRY_VOID(config.integer("select_layer", {-1, -1}, -1));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_vision(vision.value_or(Config())));
  const int size = tower.inputs.image->image_size;
  TRY_VOID(config.integer("force_image_size", {size, size}, size));
  TRY_VOID(set_internvl_projector(tower, config, spec.dim));
  TRY_VOID(set_context_token(spec, config, "<IMG_CONTEXT>"));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

Result<ModelSpec> describe_chat_encoder(const Config& config) {
  TRY(ModelSpec tower, describe_internvl_encoder(config.with_names(
                           {{"attention_bias", "qkv_bias"}, {"use_qk_norm", "qk_normalization"}})));
  tower.names = internvl_chat_names();
  return tower;
}

Result<ModelSpec> describe_eagle_encoder(const Config& config) {
  TRY(ModelSpec tower, describe_siglip(config));
  set_mlp1_names(tower.names, "vision_model.vision_model.");
  tower.names.ignorable.emplace_back("vision_model.vision_model.head.*");
  return tower;
}

}  // namespace

// InternVL 2 to 3.5, Skywork R1V and H2OVL Mississippi in the first format.
static Result<ModelSpec> describe_internvl_chat(const Config& config) {
  return describe_chat(config, describe_chat_encoder);
}

// Eagle 2.5 (Chen et al., 2025): a SigLIP encoder.
static Result<ModelSpec> describe_eagle2_5(const Config& config) {
  return describe_chat(config, describe_eagle_encoder);
}

// NVLM-D (Dai et al., 2024): the first matrix of the projector is as wide as the language model's MLPs, and
// the matrices have no biases.
static Result<ModelSpec> describe_nvlm(const Config& config) {
  TRY(ModelSpec spec, describe_internvl_chat(config));
  const auto* mlp = std::get_if<Mlp>(&spec.layers[0].feed_forward);
  if (mlp == nullptr)
    return field_failure("llm_config", ErrorCode::unsupported,
                         "{}: a language model with experts is not supported", config.where("llm_config"));
  ModelSpec tower = *spec.media.tower;
  tower.inputs.image->projector.hidden = mlp->hidden;
  tower.inputs.image->projector.bias = false;
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  if (spec.media.token < 0) spec.media.token_text = "<|vision_pad|>";
  return spec;
}

std::span<const Family> internvl_families() {
  static constexpr Family kRows[] = {
      {"Eagle2_5_VLForConditionalGeneration", describe_eagle2_5},
      {"H2OVLChatModel", describe_internvl_chat},
      {"InternS1ForConditionalGeneration", describe_internvl},
      {"InternVLChatModel", describe_internvl_chat},
      {"InternVLForConditionalGeneration", describe_internvl},
      {"NVLM_D", describe_nvlm},
      {"NVLM_D_Model", describe_nvlm},
      {"QianfanOCRForConditionalGeneration", describe_qianfan_ocr},
      {"SkyworkR1VChatModel", describe_internvl_chat},
  };
  return kRows;
}

}  // namespace octavo
