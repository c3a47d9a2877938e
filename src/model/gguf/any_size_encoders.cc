// Encoders of images of any size.
#include <boost/json/array.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/gguf/describe_encoders.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr Config::Range kEncoderPixels{1, 1 << 28};

// Limits of an image's pixels in the published models, if the file has none.
struct PixelLimits {
  int least, most;
};

// Sets what all encoders of Qwen's vision models have.
Result<> describe_qwen_encoder(const EncoderFile& file, PixelLimits limits, EncoderFields& fields) {
  json::object& vision = fields.vision;
  copy_field(vision, "num_hidden_layers", "depth");
  copy_field(vision, "num_attention_heads", "num_heads");
  vision["temporal_patch_size"] = 2;
  TRY(const int merge, file.integer("spatial_merge_size", {1, 16}, 2));
  vision["spatial_merge_size"] = merge;
  TRY(const int least, file.integer("image_min_pixels", kEncoderPixels, limits.least));
  TRY(const int most, file.integer("image_max_pixels", kEncoderPixels, limits.most));
  fields.processor["image_processor_type"] = "Qwen2VLImageProcessor";
  fields.processor["patch_size"] = vision["patch_size"];
  fields.processor["merge_size"] = merge;
  fields.processor["temporal_patch_size"] = 2;
  fields.processor["min_pixels"] = least;
  fields.processor["max_pixels"] = most;
  return {};
}

constexpr PixelLimits kQwen2Pixels{56 * 56, 28 * 28 * 16384}, kQwen3Pixels{256 * 256, 4096 * 4096};

}  // namespace

Result<> describe_qwen2_encoder(const EncoderFile& file, EncoderFields& fields) {
  TRY_VOID(describe_qwen_encoder(file, kQwen2Pixels, fields));
  json::object& vision = fields.vision;
  const std::int64_t dim = vision["hidden_size"].as_int64(), wide = vision["intermediate_size"].as_int64();
  if (wide % dim != 0)
    return failure(ErrorCode::corrupt, "{}: MLPs have {} hidden units, but must have a multiple of {}",
                   file.what(), wide, dim);
  vision["embed_dim"] = dim;
  vision["mlp_ratio"] = wide / dim;
  vision.erase("hidden_size");  // in Qwen2-VL's config.json, this is the width of the output
  return {};
}

// Most layers have windows. Every n-th layer has none.
Result<> describe_qwen2_5_encoder(const EncoderFile& file, EncoderFields& fields) {
  TRY_VOID(describe_qwen_encoder(file, kQwen2Pixels, fields));
  TRY(const int period, file.integer("n_wa_pattern", {1, 1024}));
  TRY(const int window, file.integer("window_size", {1, 1 << 16}, 112));
  json::array whole;
  const std::int64_t layers = fields.vision["depth"].as_int64();
  for (std::int64_t i = period - 1; i < layers; i += period) whole.emplace_back(i);
  fields.vision["fullatt_block_indexes"] = std::move(whole);
  fields.vision["window_size"] = window;
  fields.vision["tokens_per_second"] = 2;
  return {};
}

void adapt_qwen(const EncoderFile&, ModelSpec& tower) {
  tower.names.projector.matrices = {"mm.0", "mm.2"};
  tower.names.projector.deep = {"v.deepstack.{}.fc1", "v.deepstack.{}.fc2"};
  tower.names.projector.deep_norms = "v.deepstack.{}.norm";
}

Result<> describe_qwen3_encoder(const EncoderFile& file, EncoderFields& fields) {
  TRY_VOID(describe_qwen_encoder(file, kQwen3Pixels, fields));
  TRY(const int positions, file.rows("v.position_embd.weight"));
  fields.vision["num_position_embeddings"] = positions;
  json::array deep;
  const std::int64_t layers = fields.vision["depth"].as_int64();
  for (std::int64_t i = 0; i < layers; ++i)
    if (file.has(fmt::format("v.deepstack.{}.fc1.weight", i))) deep.emplace_back(i);
  fields.vision["deepstack_visual_indexes"] = std::move(deep);
  fields.processor["video_processor"] =
      json::object{{"video_processor_type", "Qwen3VLVideoProcessor"},
                   {"patch_size", fields.vision["patch_size"]},
                   {"merge_size", fields.vision["spatial_merge_size"]},
                   {"size", {{"shortest_edge", 4096}, {"longest_edge", 25165824}}}};
  return {};
}

// The file lacks the limits of an image's size.
Result<> describe_glm_ocr_encoder(const EncoderFile& file, EncoderFields& fields) {
  json::object& vision = fields.vision;
  copy_field(vision, "num_hidden_layers", "depth");
  copy_field(vision, "num_attention_heads", "num_heads");
  copy_field(vision, "layer_norm_eps", "rms_norm_eps");
  TRY(const bool gelu, file.flag("use_gelu"));
  TRY(const int merge, file.integer("spatial_merge_size", {1, 16}, 2));
  vision["hidden_act"] = gelu ? "gelu" : "silu";
  vision["attention_bias"] = file.has("v.blk.0.attn_qkv.bias");
  vision["spatial_merge_size"] = merge;
  vision["temporal_patch_size"] = 2;
  fields.processor["image_processor_type"] = "Glm4vImageProcessor";
  fields.processor["patch_size"] = vision["patch_size"];
  fields.processor["merge_size"] = merge;
  fields.processor["temporal_patch_size"] = 2;
  return {};
}

// In config.json, the number of hidden units is that of the projector.
Result<> describe_glm_encoder(const EncoderFile& file, EncoderFields& fields) {
  TRY_VOID(describe_glm_ocr_encoder(file, fields));
  TRY(fields.vision["intermediate_size"], file.rows("mm.up.weight"));
  return {};
}

void adapt_glm(const EncoderFile&, ModelSpec& tower) {
  tower.names.encoder.patch_norm = "v.norm_embd";
  tower.names.projector.merger = "mm.patch_merger";
  tower.names.projector.hidden_norm = "mm.post_norm";
  tower.names.projector.matrices = {"mm.model.fc", "mm.gate", "mm.up", "mm.down"};
}

Result<> describe_pixtral_encoder(const EncoderFile& file, EncoderFields& fields) {
  json::object& vision = fields.vision;
  TRY(const bool silu, file.flag("use_silu"));
  TRY(const int merge, file.integer("spatial_merge_size", {1, 16}, 1));
  vision["model_type"] = "pixtral";
  vision["hidden_act"] = silu ? "silu" : "gelu";
  fields.model["vision_feature_layer"] = -1;
  fields.model["multimodal_projector_bias"] = file.has("mm.1.bias");
  fields.model["spatial_merge_size"] = merge;
  fields.processor["image_processor_type"] = "PixtralImageProcessor";
  fields.processor["size"] = json::object{{"longest_edge", vision["image_size"]}};
  fields.processor["patch_size"] = vision["patch_size"];
  fields.processor["spatial_merge_size"] = merge;
  return {};
}

// The conversion has reordered the rows of queries and keys to interleaved pairs.
void adapt_pixtral(const EncoderFile&, ModelSpec& tower) {
  for (RopeSpec& rope : tower.ropes) rope.interleaved = true;
  tower.names.projector.matrices = {"mm.1", "mm.2"};
  tower.names.projector.merger = "mm.patch_merger";
  tower.names.final_norm = "mm.input_norm";
  tower.names.ignorable.emplace_back("v.token_embd.img_break*");
}

// Pixtral's encoder and Mistral 3's projector. The prompt has no separators of rows.
Result<> describe_lighton_encoder(const EncoderFile& file, EncoderFields& fields) {
  TRY_VOID(describe_pixtral_encoder(file, fields));
  TRY(const int longest, file.integer("preproc_image_size", {1, 1 << 16},
                                      static_cast<int>(fields.vision["image_size"].as_int64())));
  fields.processor["size"] = json::object{{"longest_edge", longest}};
  return {};
}

}  // namespace octavo
