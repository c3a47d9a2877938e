// Pixtral (Agrawal et al., 2024) and Mistral 3 with images (Mistral Small 3.1, 2025): an encoder of images of
// any size, with RoPE for rows and columns. In Mistral 3, a matrix joins squares of patches. The prompt has a
// separator token between the rows of an image. Both also exist in Mistral's own format.
#include <boost/json.hpp>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kPixtralVision = R"({"hidden_act": "gelu",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 24,
    "patch_size": 16,
    "rope_theta": 10000,
    "max_position_embeddings": 1,
    "vocab_size": 1})";
constexpr float kPixtralEps = 1e-5F;

Result<RopeSpec> read_pixtral_rope(const Config& config, int head_dim) {
  if (head_dim % 4 != 0)
    return invalid("num_attention_heads",
                   "{}: heads have {} elements, but the number must be a multiple of 4",
                   config.where("num_attention_heads"), head_dim);
  RopeSpec rope{.rotary_dim = head_dim, .axis_frequencies = AxisFrequencies::alternating};
  TRY(rope.theta, config.number("rope_theta", {1, 1e12}));
  TRY(const std::optional<Config> given, config.object("rope_parameters"));
  if (given) {
    TRY(rope.theta, given->number("rope_theta", {1, 1e12}, rope.theta));
  }
  for (int pair = 0; pair < head_dim / 2; ++pair) rope.axes.push_back(pair < head_dim / 4 ? 0 : 1);
  return rope;
}

// Describes the encoder without projector and names. `config` has all fields.
Result<ModelSpec> describe_vision_layers(const Config& config) {
  TRY(ModelSpec tower, describe_dense(config, {.kv_heads = "num_attention_heads",
                                               .eps = "",
                                               .norm = {.kind = NormKind::rms, .eps = kPixtralEps},
                                               .rotary = false}));
  tower.vocab = 0;
  tower.embedding.norm = tower.final_norm;
  tower.final_norm = {};
  TRY(const RopeSpec rope, read_pixtral_rope(config, tower.layers[0].attention().head_dim));
  tower.ropes = {rope};
  for (LayerSpec& layer : tower.layers) {
    layer.attention().mask.causal = false;
    layer.attention().rope = 0;
  }
  ImageInput image{.bias = false, .row_breaks = true};
  TRY(image.patch_size, config.integer("patch_size", {1, 1024}));
  TRY_VOID(config.integer("num_channels", {3, 3}));
  tower.inputs.image = image;
  return tower;
}

Names tower_names(const std::string& prefix) {
  const std::string tower = "vision_tower.";
  Names names;
  names.prefixes = {prefix};
  names.encoder.patches = tower + "patch_conv";
  names.embedding.norm = tower + "ln_pre";
  names.layers = tower + "transformer.layers.";
  names.attention.norm = "attention_norm";
  names.attention.qkv = {"attention.q_proj", "attention.k_proj", "attention.v_proj"};
  names.attention.out = "attention.o_proj";
  names.mlp.norm = "ffn_norm";
  names.mlp.up = {"feed_forward.gate_proj", "feed_forward.up_proj"};
  names.mlp.down = "feed_forward.down_proj";
  names.final_norm = "multi_modal_projector.norm";
  const std::string projector = prefix + "multi_modal_projector.";
  names.projector.merger = projector + "patch_merger.merging_layer";
  names.projector.matrices = {projector + "linear_1", projector + "linear_2"};
  names.ignorable = {"language_model.*", "model.language_model.*", "lm_head.*"};
  return names;
}

Result<> require(const Config& config, std::string_view field, std::string_view only) {
  TRY(const std::string value, config.text(field, std::string(only)));
  if (value == only) return {};
  return field_failure(field, ErrorCode::unsupported, "{} is \"{}\", but only {} is supported",
                       config.where(field), value, only);
}

}  // namespace

Result<ModelSpec> describe_pixtral_tower(const Config& config, const ModelSpec& text) {
  TRY(const std::optional<Config> given, config.object("vision_config"));
  Config vision = given.value_or(Config());
  TRY_VOID(require(vision, "model_type", "pixtral"));
  vision.set_defaults(kPixtralVision);
  TRY(ModelSpec tower, describe_vision_layers(vision));
  TRY_VOID(config.integer("vision_feature_layer", {-1, -1}, -1));
  TRY_VOID(require(config, "projector_hidden_act", "gelu"));
  ImageInput& image = *tower.inputs.image;
  image.out_dim = text.dim;
  image.projector = {.activation = Activation::gelu, .hidden = text.dim};
  TRY(image.projector.bias, config.boolean("multimodal_projector_bias", true));
  tower.names = tower_names("");
  tower.other_names = tower_names("model.");
  return tower;
}

static Result<ModelSpec> describe_mistral3(const Config& config) {
  TRY(ModelSpec spec, describe_mistral3_text(config));
  TRY_VOID(set_tied(spec, config));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  if (!vision) return spec;
  TRY(spec.media.token, config.integer("image_token_index", {0, kMaxVocab}, 10));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, spec.media.token));
  TRY(ModelSpec tower, describe_pixtral_tower(config, spec));
  tower.final_norm = {.kind = NormKind::rms, .eps = spec.final_norm.eps};
  TRY(tower.inputs.image->merge, config.integer("spatial_merge_size", {1, 16}, 2));
  tower.inputs.image->projector.merged = true;
  TRY(tower.inputs.image->projector.bias, config.boolean("multimodal_projector_bias", false));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

// LightOnOCR (LightOn, 2025): Mistral 3's encoder and projector, and a Qwen3. The prompt has no separators.
static Result<ModelSpec> describe_lighton_ocr(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3(config));
  TRY_VOID(set_tied(spec, config));
  const std::string encoder = "model.vision_encoder.", projector = "model.vision_projection.";
  spec.names.prefixes = {"model.language_model."};
  for (const std::string& other : {encoder, projector}) spec.names.ignorable.push_back(other + "*");
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 151655));
  TRY(ModelSpec tower, describe_pixtral_tower(config, spec));
  tower.final_norm = {.kind = NormKind::rms, .eps = spec.final_norm.eps};
  ImageInput& image = *tower.inputs.image;
  image.row_breaks = false;
  image.projector.merged = true;
  TRY(image.merge, config.integer("spatial_merge_size", {1, 16}, 2));
  TRY(image.projector.bias, config.boolean("multimodal_projector_bias", false));
  tower.other_names.reset();
  Names& names = tower.names;
  for (std::string* name : {&names.encoder.patches, &names.embedding.norm, &names.layers})
    name->replace(0, std::string_view("vision_tower.").size(), encoder);
  names.final_norm = projector + "norm";
  names.projector.merger = projector + "patch_merger.merging_layer";
  names.projector.matrices = {projector + "linear_1", projector + "linear_2"};
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

namespace {

// Mistral's own names of the encoder and the projector. RoPE pairs adjacent elements of a head.
Names own_names() {
  const std::string tower = "vision_encoder.";
  Names names;
  names.prefixes = {""};
  names.encoder.patches = tower + "patch_conv";
  names.embedding.norm = tower + "ln_pre";
  names.layers = tower + "transformer.layers.";
  names.attention.norm = "attention_norm";
  names.attention.qkv = {"attention.wq", "attention.wk", "attention.wv"};
  names.attention.out = "attention.wo";
  names.mlp.norm = "ffn_norm";
  names.mlp.up = {"feed_forward.w1", "feed_forward.w3"};
  names.mlp.down = "feed_forward.w2";
  names.final_norm = "pre_mm_projector_norm";
  names.projector.merger = "patch_merger.merging_layer";
  names.projector.matrices = {"vision_language_adapter.w_in", "vision_language_adapter.w_out"};
  names.ignorable = {"layers.*", "tok_embeddings.*", "norm.*", "output.*"};
  return names;
}

Result<ModelSpec> describe_own_tower(const Config& config, const ModelSpec& text) {
  Config vision = config;
  boost::json::object defaults = boost::json::parse(kPixtralVision).as_object();
  defaults["hidden_act"] = "silu";
  vision.set_defaults(std::move(defaults));
  TRY(ModelSpec tower, describe_vision_layers(vision));
  tower.ropes[0].interleaved = true;
  ImageInput& image = *tower.inputs.image;
  image.out_dim = text.dim;
  image.projector = {.activation = Activation::gelu, .hidden = text.dim};
  TRY(image.projector.bias, config.boolean("adapter_bias", true));
  TRY(const bool normed, config.boolean("add_pre_mm_projector_layer_norm", false));
  if (normed) tower.final_norm = {.kind = NormKind::rms, .eps = kPixtralEps};
  TRY(const std::string joined, config.text("mm_projector_id", ""));
  if (joined == "patch_merge") {
    TRY(image.merge, config.integer("spatial_merge_size", {1, 16}));
    image.projector.merged = true;
  } else if (!joined.empty()) {
    return field_failure("vision_encoder.mm_projector_id", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be patch_merge or missing",
                         config.where("mm_projector_id"), joined);
  }
  tower.names = own_names();
  return tower;
}

}  // namespace

// Pixtral and Mistral 3 in Mistral's own format (params_file.h).
static Result<ModelSpec> describe_pixtral(const Config& config) {
  TRY(const std::string text, config.text("text_architecture"));
  const boost::json::object inner{{"architectures", boost::json::array{text}}};
  TRY(ModelSpec spec, describe(config.with_fields_of(Config::of(inner, "params.json", {}))));
  TRY(const std::optional<Config> vision, config.object("vision_encoder"));
  if (!vision)
    return invalid("vision_encoder", "{} is missing, but must have the configuration of the encoder",
                   config.where("vision_encoder"));
  TRY(spec.media.token, vision->integer("image_token_id", {0, kMaxVocab}));
  TRY(ModelSpec tower, describe_own_tower(*vision, spec));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> pixtral_families() {
  static constexpr Family kRows[] = {
      {"LightOnOCRForConditionalGeneration", describe_lighton_ocr},
      {"LightOnOcrForConditionalGeneration", describe_lighton_ocr},
      {"Mistral3ForConditionalGeneration", describe_mistral3},
      {"PixtralForConditionalGeneration", describe_pixtral},
  };
  return kRows;
}

}  // namespace octavo
