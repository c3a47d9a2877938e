// Vision models of Nemotron with a RADIO encoder (Ranzinger et al., "AM-RADIO", 2024): a plain transformer
// over patches with several class tokens, and a grid of positions that is stretched over a square with the
// image's longer side. The projector is InternVL's. Llama Nemotron Nano VL (NVIDIA, 2025), Nemotron Nano VL 2
// (2025) and Nemotron 3 Omni (2026); videos and sounds are not read.
#include <boost/json.hpp>
#include <cmath>
#include <set>
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/internvl.h"

namespace octavo {
namespace {

struct Sizes {
  std::string_view model;
  int dim, layers, heads, hidden;
};
constexpr Sizes kSizes[] = {
    {"vit_small_patch16_224", 384, 12, 6, 1536},    {"vit_base_patch16_224", 768, 12, 12, 3072},
    {"vit_large_patch16_224", 1024, 24, 16, 4096},  {"vit_huge_patch16_224", 1280, 32, 16, 5120},
    {"vit_so400m_patch16_224", 1152, 27, 16, 4304},
};

// Returns the configuration of the encoder's layers. args.model is the name of a size; fields of
// vision_config replace its numbers.
Result<Config> layers_of(const Config& vision, const Config& args) {
  TRY(const std::string model, args.text("model", "vit_huge_patch16_224"));
  const auto* sizes = std::ranges::find(kSizes, model, &Sizes::model);
  if (sizes == std::end(kSizes))
    return field_failure("vision_config.args.model", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be vit_small, vit_base, vit_large, "
                         "vit_huge or vit_so400m, followed by _patch16_224",
                         args.where("model"), model);
  boost::json::object missing;
  for (const auto& [field, value] : {std::pair{"hidden_size", sizes->dim},
                                     {"num_hidden_layers", sizes->layers},
                                     {"num_attention_heads", sizes->heads},
                                     {"intermediate_size", sizes->hidden},
                                     {"patch_size", 16},
                                     {"image_size", 512}})
    if (!vision.has(field)) missing[field] = value;
  if (!vision.has("attention_bias")) missing["attention_bias"] = true;
  return vision.with_fields_of(Config::of(std::move(missing), "config.json", {}));
}

// Returns the number of class tokens: one, or one per teacher, and registers that fill up to a multiple.
Result<int> count_class_tokens(const Config& args) {
  int tokens = 1;
  TRY(const bool each, args.boolean("cls_token_per_teacher", false));
  if (each) {
    TRY(const std::vector<Config> teachers, args.list("teachers"));
    std::set<std::string> names;
    for (const Config& teacher : teachers) {
      TRY(const std::string name, teacher.text("name"));
      names.insert(name);
    }
    tokens = std::max(1, static_cast<int>(names.size()));
  }
  if (!args.has("register_multiple")) return tokens;
  TRY(const int multiple, args.integer("register_multiple", {1, 256}));
  return tokens + multiple - tokens % multiple;
}

void set_radio_names(ModelSpec& tower) {
  Names names;
  set_mlp1_names(names, "vision_model.radio_model.model.");
  names.encoder.patches = "patch_generator.embedder";
  names.encoder.class_token = "patch_generator.cls_token.token";
  names.embedding.positions = "patch_generator.pos_embed";
  names.encoder.stacked_tables = true;
  names.layers = "blocks.";
  names.attention.norm = "norm1";
  names.mlp.norm = "norm2";
  names.attention.qkv = {"attn.qkv"};
  names.attention.out = "attn.proj";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  for (const char* other :
       {"vision_model.radio_model.summary_idxs", "vision_model.radio_model.input_conditioner.*",
        "vision_model.radio_model.model.patch_generator.video_embedder.*", "sound_*"})
    names.ignorable.emplace_back(other);
  tower.names = std::move(names);
}

// Reads the size of the images. With min_num_patches, images have any size.
Result<> set_image(ModelSpec& tower, const Config& config, const Config& vision, const Config& args) {
  ImageInput image{.bias = false, .storage = PatchStorage::matrix};
  TRY(image.patch_size, vision.integer("patch_size", {1, 1024}));
  TRY(image.classes.count, count_class_tokens(args));
  TRY(const int largest, args.integer("cpe_max_size", {image.patch_size, 1 << 16}, 2048));
  image.grid.side = static_cast<int>(std::lround(static_cast<double>(largest) / image.patch_size));
  image.grid.stretch = PositionStretch::cropped;
  tower.embedding.learned_positions = image.grid.side * image.grid.side;
  tower.max_positions = 1;  // the image processor limits the number of patches
  if (!args.has("min_num_patches")) {
    TRY(image.image_size, config.integer("force_image_size", {image.patch_size, 4096}, 512));
    const int side = image.image_size / image.patch_size;
    tower.max_positions = side * side + image.classes.count;
  }
  tower.inputs.image = image;
  return {};
}

Result<ModelSpec> describe_radio_encoder(const Config& config) {
  TRY(const std::optional<Config> given, config.object("vision_config"));
  TRY(const std::optional<Config> own, given.value_or(Config()).object("args"));
  const Config args = own.value_or(Config());
  TRY(const Config vision, layers_of(given.value_or(Config()), args));
  TRY(ModelSpec tower, describe_internvl_encoder(vision));
  tower.final_norm = {};
  TRY_VOID(set_image(tower, config, vision, args));
  set_radio_names(tower);
  return tower;
}

Result<ModelSpec> describe_with_radio(const Config& config, ModelSpec (*finish)(ModelSpec tower)) {
  TRY(ModelSpec spec, describe_inner_text(config));
  spec.names.ignorable.emplace_back("sound_*");
  if (spec.other_names) spec.other_names->ignorable.emplace_back("sound_*");
  TRY_VOID(support(config, "ps_version", "v2"));
  TRY(ModelSpec tower, describe_radio_encoder(config));
  // Models whose language model has layers for multi-token prediction have a norm without weights.
  TRY(std::optional<Config> text, config.object("llm_config"));
  TRY(const int predictors, text.value_or(config).integer("num_nextn_predict_layers", {0, 64}, 0));
  if (predictors > 0) tower.final_norm = {.kind = NormKind::layer, .eps = 1e-6F, .stored = false};
  TRY_VOID(set_internvl_projector(tower, config, spec.dim));
  TRY(tower.inputs.image->projector.hidden, config.integer("projector_hidden_size", kDim, spec.dim));
  TRY_VOID(set_context_token(spec, config, "<image>"));
  spec.media.tower = std::make_shared<const ModelSpec>(finish(std::move(tower)));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_llama_nemotron_nano_vl(const Config& config) {
  return describe_with_radio(config, [](ModelSpec tower) { return tower; });
}

// From the second generation on, the projector has an RMS norm and no biases.
static Result<ModelSpec> describe_nemotron_nano_vl(const Config& config) {
  return describe_with_radio(config, [](ModelSpec tower) {
    Projector& projector = tower.inputs.image->projector;
    projector.norm = {.kind = NormKind::rms, .eps = 1e-5F};
    projector.activation = Activation::relu_squared;
    projector.bias = false;
    return tower;
  });
}

std::span<const Family> radio_families() {
  static constexpr Family kRows[] = {
      {"Llama_Nemotron_Nano_VL", describe_llama_nemotron_nano_vl},
      {"NemotronH_Nano_Omni_Reasoning_V3", describe_nemotron_nano_vl},
      {"NemotronH_Nano_VL_V2", describe_nemotron_nano_vl},
      {"NemotronH_Omni_Reasoning_V3", describe_nemotron_nano_vl},
      {"NemotronH_Super_Omni_Reasoning_V3", describe_nemotron_nano_vl},
  };
  return kRows;
}

}  // namespace octavo
