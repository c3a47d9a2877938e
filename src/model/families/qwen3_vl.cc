// Qwen3-VL (Qwen Team, 2025): Qwen2-VL's encoder with learned positions in addition to RoPE, and a Qwen3,
// dense or with experts. The outputs of three more encoder layers are added in the first layers of the Qwen3
// ("DeepStack"). Qwen3.5 (2026): the same encoder without DeepStack, and a hybrid language model.
#include <algorithm>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kQwen3Vision = R"({"depth": 27,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "in_channels": 3,
    "intermediate_size": 4304,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 3584,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "max_position_embeddings": 1,
    "vocab_size": 1})";
constexpr NormSpec kNorm{.kind = NormKind::layer, .eps = 1e-6F, .bias = true};
constexpr AxisSections kSections{.absent = {24, 20, 20}, .interleaved = true};
constexpr AxisSections kQwen35Sections{.absent = {11, 11, 10}, .interleaved = true};

// Sets the learned positions, which must form a square.
Result<> set_positions(ModelSpec& spec, const Config& config) {
  TRY(spec.embedding.learned_positions, config.integer("num_position_embeddings", {1, 1 << 20}));
  int& side = spec.inputs.image->grid.side;
  while ((side + 1) * (side + 1) <= spec.embedding.learned_positions) ++side;
  if (side * side != spec.embedding.learned_positions)
    return invalid("num_position_embeddings", "{} is {}, but must be a square",
                   config.where("num_position_embeddings"), spec.embedding.learned_positions);
  return {};
}

// The projectors of deep layers normalise squares of patches; the main projector normalises patches.
Result<> set_deep_layers(ModelSpec& spec, const Config& config) {
  ImageInput& image = *spec.inputs.image;
  image.deep_layers = {8, 16, 24};
  if (config.has("deepstack_visual_indexes")) {
    TRY(image.deep_layers, config.integers("deepstack_visual_indexes", {0, std::ssize(spec.layers) - 1}));
  }
  if (std::ranges::adjacent_find(image.deep_layers, std::greater_equal()) != image.deep_layers.end() ||
      (!image.deep_layers.empty() && image.deep_layers.back() >= std::ssize(spec.layers)))
    return invalid("deepstack_visual_indexes", "{} must be in ascending order and below depth {}",
                   config.where("deepstack_visual_indexes"), spec.layers.size());
  image.deep_projector = image.projector;
  image.deep_projector.norm = kNorm;
  return {};
}

}  // namespace

Result<ModelSpec> describe_qwen3_vl_tower(Config config) {
  config.set_defaults(kQwen3Vision);
  TRY(ModelSpec spec, describe_dense(config, {.layers = "depth",
                                              .heads = "num_heads",
                                              .kv_heads = "num_heads",
                                              .head_dim = "",
                                              .activation = "",
                                              .eps = "",
                                              .norm = kNorm,
                                              .rotary = false}));
  TRY_VOID(set_activation(config, spec));
  TRY_VOID(make_qwen_tower(spec, config));
  TRY_VOID(set_positions(spec, config));
  const std::string prefix = "model.visual.";
  spec.names = qwen_tower_names(prefix);
  spec.names.embedding.positions = "pos_embed";
  spec.names.mlp.up = {"mlp.linear_fc1"};
  spec.names.mlp.down = "mlp.linear_fc2";
  spec.names.final_norm = "merger.norm";
  spec.names.projector.matrices = {prefix + "merger.linear_fc1", prefix + "merger.linear_fc2"};
  return spec;
}

namespace {

Result<ModelSpec> describe_deep_tower(Config config) {
  TRY(ModelSpec spec, describe_qwen3_vl_tower(config));
  TRY_VOID(set_deep_layers(spec, config));
  const std::string deep = "model.visual.deepstack_merger_list.{}.";
  spec.names.projector.deep = {deep + "linear_fc1", deep + "linear_fc2"};
  spec.names.projector.deep_norms = deep + "norm";
  return spec;
}

Result<ModelSpec> with_deep_eyes(ModelSpec spec, const Config& config) {
  TRY_VOID(set_axes(spec, config, kSections));
  TRY_VOID(set_tied(spec, config));
  TRY(spec, with_qwen_tower(std::move(spec), config, describe_deep_tower, "out_hidden_size"));
  if (spec.media.tower->inputs.image->deep_layers.size() > spec.layers.size())
    return invalid("deepstack_visual_indexes",
                   "config.json: deepstack_visual_indexes has {} layers, but the language model has only {}",
                   spec.media.tower->inputs.image->deep_layers.size(), spec.layers.size());
  return spec;
}

Result<ModelSpec> with_eyes(ModelSpec spec, const Config& config) {
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  if (!vision || !vision->has("depth")) return spec;  // a text model
  TRY_VOID(set_axes(spec, config, kQwen35Sections));
  TRY_VOID(set_tied(spec, config));
  TRY(spec, with_qwen_tower(std::move(spec), config, describe_qwen3_vl_tower, "out_hidden_size"));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 248056));
  TRY(spec.media.video_token, config.integer("video_token_id", {0, kMaxVocab}, 248057));
  return spec;
}

// Returns text_config with the defaults of Qwen3-VL's language model.
Result<Config> read_text(const Config& config) {
  TRY(std::optional<Config> text, config.object("text_config"));
  Config read = std::move(text).value_or(Config());
  read.set_defaults(field_defaults("Qwen3VLForConditionalGeneration"));
  return read;
}

}  // namespace

Result<ModelSpec> describe_qwen3_vl(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3(config));
  return with_deep_eyes(std::move(spec), config);
}

// Cosmos 3 (NVIDIA, 2026): a Qwen3-VL beside a generator of videos, which is not used. Names have no
// prefixes.
static Result<ModelSpec> describe_cosmos3(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_vl(config));
  spec.names.prefixes = {""};
  spec.names.attention.qkv = {"self_attn.to_q", "self_attn.to_k", "self_attn.to_v"};
  spec.names.attention.out = "self_attn.to_out";
  spec.names.attention.q_norm = "self_attn.norm_q";
  spec.names.attention.k_norm = "self_attn.norm_k";
  ModelSpec tower = *spec.media.tower;
  Names& names = tower.names;
  names.prefixes = {""};
  names.projector.matrices = {"merger.linear_fc1", "merger.linear_fc2"};
  names.projector.deep = {"deepstack_merger_list.{}.linear_fc1", "deepstack_merger_list.{}.linear_fc2"};
  names.projector.deep_norms = "deepstack_merger_list.{}.norm";
  for (const char* text : {"layers.*", "embed_tokens.*", "norm.*"}) names.ignorable.emplace_back(text);
  for (const char* tower_part :
       {"blocks.*", "merger.*", "patch_embed.*", "pos_embed.*", "deepstack_merger_list.*"})
    spec.names.ignorable.emplace_back(tower_part);
  for (const char* generator : {"proj_in.*", "proj_out.*", "time_embedder.*", "audio_*", "action_*"})
    for (Names* both : {&spec.names, &names}) both->ignorable.emplace_back(generator);
  for (const char* part :
       {"mlp_moe_gen.gate_proj", "mlp_moe_gen.up_proj", "mlp_moe_gen.down_proj", "add_q_proj", "add_k_proj",
        "add_v_proj", "to_add_out", "norm_added_q", "norm_added_k", "input_layernorm_moe_gen",
        "post_attention_layernorm_moe_gen", "norm_moe_gen"})
    spec.names.ignorable.push_back(fmt::format("*{}.weight", part));
  names.ignorable.emplace_back("norm_moe_gen.*");
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

// Alpamayo 2 Super (NVIDIA, 2026): a Qwen3-VL beside a network for trajectories, which is not used.
// vlm_config has the fields of the Qwen3-VL.
static Result<ModelSpec> describe_alpamayo2(const Config& config) {
  TRY(const std::optional<Config> inner, config.object("vlm_config"));
  if (!inner)
    return invalid("vlm_config", "{} is missing, but must have the configuration of the Qwen3-VL",
                   config.where("vlm_config"));
  TRY(Config text, read_text(*inner));
  TRY(ModelSpec spec, describe_qwen3(text));
  TRY_VOID(set_axes(spec, text, kSections));
  TRY(spec.logits.tied, config.boolean("tie_word_embeddings", spec.logits.tied));
  TRY(spec, with_qwen_tower(std::move(spec), *inner, describe_deep_tower, "out_hidden_size"));
  spec.media.video_token = -1;
  ModelSpec tower = *spec.media.tower;
  const std::string prefix = "vlm.model.visual.", deep = prefix + "deepstack_merger_list.{}.";
  spec.names.prefixes = {"vlm.model.language_model."};
  spec.names.lm_head = "vlm.lm_head";
  tower.names.prefixes = {prefix};
  tower.names.projector.matrices = {prefix + "merger.linear_fc1", prefix + "merger.linear_fc2"};
  tower.names.projector.deep = {deep + "linear_fc1", deep + "linear_fc2"};
  tower.names.projector.deep_norms = deep + "norm";
  for (const char* other : {"vlm.model.visual.*", "expert.*"}) spec.names.ignorable.emplace_back(other);
  for (const char* other : {"vlm.model.language_model.*", "vlm.lm_head.*", "expert.*"})
    tower.names.ignorable.emplace_back(other);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

static Result<ModelSpec> describe_qwen3_vl_moe(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_moe(config));
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward)) experts->router.renormalise = true;
  TRY(spec, with_deep_eyes(std::move(spec), config));
  spec.names.of<Experts>().storage = ExpertStorage::stacked_transposed;
  spec.names.of<Experts>().up = {"mlp.experts.gate_up_proj"};
  spec.names.of<Experts>().down = "mlp.experts.down_proj";
  spec.other_names = spec.names;  // names in transformers 5's files
  spec.other_names->of<Experts>().storage = ExpertStorage::stacked;
  return spec;
}

Result<ModelSpec> describe_qwen3_5_vl(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_5(config));
  return with_eyes(std::move(spec), config);
}

static Result<ModelSpec> describe_qwen3_5_moe_vl(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_5_moe(config));
  return with_eyes(std::move(spec), config);
}

// Intern-S2 Preview (Shanghai AI Laboratory, 2026): Qwen3.5 beside an encoder of time series, which is not
// read.
static Result<ModelSpec> describe_interns2_preview(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3_5_moe_vl(config));
  const auto leave_out_series = [](Names& names) {
    for (const char* other : {"model.time_series.*", "time_series.*"}) names.ignorable.emplace_back(other);
  };
  leave_out_series(spec.names);
  if (spec.other_names) leave_out_series(*spec.other_names);
  if (!spec.media.tower) return spec;
  ModelSpec tower = *spec.media.tower;
  leave_out_series(tower.names);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

// Qwen3-Omni (Xu et al., 2025): the thinker with texts and images. It is a Qwen3-VL with experts beside an
// encoder of sound and a speaker.
static Result<ModelSpec> describe_qwen3_omni(const Config& config) {
  TRY(const Thinker thinker, read_thinker(config, "Qwen3MoeForCausalLM"));
  TRY(ModelSpec spec, describe_qwen3_moe(thinker.text));
  TRY(spec.logits.tied, thinker.config.boolean("tie_word_embeddings", spec.logits.tied));
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward)) experts->router.renormalise = true;
  TRY_VOID(set_axes(spec, thinker.text, kSections));
  TRY(spec, with_qwen_tower(std::move(spec), thinker.config, describe_deep_tower, "out_hidden_size"));
  spec.media.video_token = -1;
  spec.names.prefixes = {"thinker.model."};
  spec.names.lm_head = "thinker.lm_head";
  ModelSpec tower = *spec.media.tower;
  const std::string prefix = "thinker.visual.", deep = prefix + "merger_list.{}.";
  tower.names.prefixes = {prefix};
  tower.names.final_norm = "merger.ln_q";
  tower.names.projector.matrices = {prefix + "merger.mlp.0", prefix + "merger.mlp.2"};
  tower.names.projector.deep = {deep + "mlp.0", deep + "mlp.2"};
  tower.names.projector.deep_norms = deep + "ln_q";
  for (Names* names : {&spec.names, &tower.names})
    for (const char* other : {"thinker.audio_tower.*", "thinker.visual.*", "talker.*", "code2wav.*"})
      names->ignorable.emplace_back(other);
  for (const char* other : {"thinker.model.*", "thinker.lm_head.*"})
    tower.names.ignorable.emplace_back(other);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> qwen3_vl_families() {
  static constexpr Family kRows[] = {
      {"Alpamayo2Super", describe_alpamayo2},
      {"Cosmos3ForConditionalGeneration", describe_cosmos3},
      {"Cosmos3OmniForConditionalGeneration", describe_cosmos3},
      {"InternS2PreviewForConditionalGeneration", describe_interns2_preview},
      {"Qwen3OmniMoeForConditionalGeneration", describe_qwen3_omni},
      {"Qwen3VLForConditionalGeneration", describe_qwen3_vl},
      {"Qwen3VLMoeForConditionalGeneration", describe_qwen3_vl_moe},
      {"Qwen3_5ForConditionalGeneration", describe_qwen3_5_vl},
      {"Qwen3_5MoeForConditionalGeneration", describe_qwen3_5_moe_vl},
  };
  return kRows;
}

}  // namespace octavo
