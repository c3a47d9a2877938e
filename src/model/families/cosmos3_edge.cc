// Cosmos 3 Edge (NVIDIA, 2026): a SigLIP 2 encoder whose patches are joined in squares, and a Llama with
// ungated MLPs, whose tokens have positions in time, height and width. The generator beside it is not used.
#include <memory>
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr const char* kEdgeGenerator[] = {
    "proj_in.*",   "proj_out.*",     "time_embedder.*", "audio_*",        "action_*",
    "*_moe_gen.*", "*.to_add_out.*", "*.add_*",         "*.norm_added_*", "*.k_norm_und_for_gen.*"};

void ignore_edge_generator(Names& names) {
  for (const char* tensor : kEdgeGenerator) names.ignorable.emplace_back(tensor);
}

Result<ModelSpec> describe_edge_tower(const Config& vision, const Config& config, int out_dim) {
  TRY(ModelSpec tower, describe_siglip2(vision));
  ImageInput& image = *tower.inputs.image;
  image.out_dim = out_dim;
  TRY(image.merge, vision.integer("spatial_merge_size", {1, 16}, 2));
  image.projector = {.patch_norm = {.kind = NormKind::layer, .eps = 1e-6F, .bias = true},
                     .activation = Activation::gelu,
                     .bias = true};
  TRY(image.projector.hidden, config.integer("projector_hidden_size", kDim, 11520));
  const std::string projector = "model.projector.";
  tower.names.prefixes = {"model.visual."};
  tower.names.projector.patch_norm = projector + "norm";
  tower.names.projector.matrices = {projector + "linear_fc1", projector + "linear_fc2"};
  for (const char* text : {"model.language_model.*", "layers.*", "embed_tokens.*", "norm.*", "lm_head.*"})
    tower.names.ignorable.emplace_back(text);
  ignore_edge_generator(tower.names);
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_cosmos3_edge(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(leave_out_gates(spec, config, false));
  TRY_VOID(set_axes(spec, config, {.absent = {24, 20, 20}, .interleaved = true}));
  TRY_VOID(set_tied(spec, config));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 19));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_edge_tower(vision.value_or(Config()), config, spec.dim));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  for (const char* other : {"model.visual.*", "model.projector.*"}) spec.names.ignorable.emplace_back(other);
  ignore_edge_generator(spec.names);
  spec.other_names = spec.names;  // names in the published checkpoint
  spec.names.prefixes = {"model.language_model."};
  spec.names.mlp.up = {"mlp.fc1"};
  spec.names.mlp.down = "mlp.fc2";
  spec.other_names->prefixes = {""};
  spec.other_names->attention.qkv = {"self_attn.to_q", "self_attn.to_k", "self_attn.to_v"};
  spec.other_names->attention.out = "self_attn.to_out";
  return spec;
}

std::span<const Family> cosmos3_edge_families() {
  static constexpr Family kRows[] = {{"Cosmos3EdgeForConditionalGeneration", describe_cosmos3_edge}};
  return kRows;
}

}  // namespace octavo
