// Encoders of images with one size, or of tiles.
#include <algorithm>
#include <boost/json/array.hpp>
#include <string>

#include "model/gguf/describe_encoders.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr Config::Range kScale{1, 64};
constexpr int kGemma4Tokens = 280;  // largest number of tokens of an image in the published models
constexpr int kLfm2Tile = 512;      // side of a tile in the published models

json::object square(const json::value& side) { return {{"height", side}, {"width", side}}; }

// Returns the factor by which the projector shrinks a side of the grid of patches.
Result<int> scale_factor(const EncoderFile& file, int absent) {
  return file.integer("projector.scale_factor", kScale, absent);
}

}  // namespace

Result<> describe_gemma3_encoder(const EncoderFile& file, EncoderFields& fields) {
  fields.vision["hidden_act"] = "gelu_pytorch_tanh";
  TRY(const int scale, scale_factor(file, 4));
  const std::int64_t side =
      fields.vision["image_size"].as_int64() / fields.vision["patch_size"].as_int64() / scale;
  fields.model["mm_tokens_per_image"] = side * side;
  fields.processor["image_processor_type"] = "Gemma3ImageProcessor";
  fields.processor["size"] = square(fields.vision["image_size"]);
  return {};
}

void adapt_gemma3(const EncoderFile&, ModelSpec& tower) {
  tower.inputs.image->projector.norm.weight_offset = 0;  // the file's weights contain the 1
  tower.names.projector.matrices = {"mm.input_projection.weight"};
  tower.names.projector.norm = "mm.soft_emb_norm";
}

// The larger models have a scale after the encoder. In their language models, tokens of an image see each
// other. The smaller models have limits of matrices.
Result<> describe_gemma4_encoder(const EncoderFile& file, EncoderFields& fields) {
  json::object& vision = fields.vision;
  TRY(const int rows, file.rows("v.blk.0.attn_q.weight"));
  TRY(const int positions, file.positions());
  TRY(const int scale, scale_factor(file, 3));
  const bool standard = file.has("v.std_scale");
  vision["head_dim"] = rows / vision["num_attention_heads"].as_int64();
  copy_field(vision, "num_attention_heads", "num_key_value_heads");
  copy_field(vision, "layer_norm_eps", "rms_norm_eps");
  vision["pooling_kernel_size"] = scale;
  vision["position_embedding_size"] = positions;
  vision["use_clipped_linears"] = file.has("v.blk.0.attn_q.input_max");
  vision["standardize"] = standard;
  if (standard) fields.model["use_bidirectional_attention"] = "vision";
  fields.processor["image_processor_type"] = "Gemma4ImageProcessor";
  fields.processor["max_soft_tokens"] = std::clamp(positions / scale, 1, kGemma4Tokens);
  fields.processor["patch_size"] = vision["patch_size"];
  fields.processor["pooling_kernel_size"] = scale;
  return {};
}

void adapt_gemma4(const EncoderFile& file, ModelSpec& tower) {
  tower.inputs.image->storage = PatchStorage::convolution;
  Names& names = tower.names;
  names.bounded = file.has("v.blk.0.attn_q.input_max");
  names.embedding.positions = "v.position_embd.weight";
  names.attention.post_norm = "attn_post_norm";
  names.mlp.post_norm = "ffn_post_norm";
  names.projector.matrices = {"mm.input_projection"};
  if (tower.final_norm.kind == NormKind::none) return;
  names.encoder.standard_scale = "v.std_scale";
  names.encoder.standard_bias = "v.std_bias";
}

// The longest edge of the published models is 4 tiles.
Result<> describe_idefics3_encoder(const EncoderFile& file, EncoderFields& fields) {
  fields.vision["hidden_act"] = "gelu_pytorch_tanh";
  TRY(const int scale, scale_factor(file, 2));
  fields.model["scale_factor"] = scale;
  const json::value tile = fields.vision["image_size"];
  TRY(const int longest,
      file.integer("preproc_image_size", {1, 1 << 16}, static_cast<int>(4 * tile.as_int64())));
  fields.processor["image_processor_type"] = "Idefics3ImageProcessor";
  fields.processor["max_image_size"] = json::object{{"longest_edge", tile}};
  fields.processor["size"] = json::object{{"longest_edge", longest}};
  return {};
}

void adapt_idefics3(const EncoderFile&, ModelSpec& tower) {
  tower.names.projector.matrices = {"mm.model.fc"};
}

// The file lacks the layers that the projector does not read.
Result<> describe_llava_encoder(const EncoderFile& file, EncoderFields& fields) {
  TRY(const std::vector<double> layers, file.numbers("feature_layer"));
  TRY(const std::vector<double> sizes, file.numbers("image_grid_pinpoints"));
  const std::string_view other = layers.size() > 1           ? "several layers for the projector"
                                 : !sizes.empty()            ? "images in tiles (LLaVA-NeXT)"
                                 : file.has("mm.3.weight")   ? "a projector with norms"
                                 : !file.has("v.class_embd") ? "an encoder without a class token"
                                                             : "";
  if (!other.empty())
    return field_failure("mmproj", ErrorCode::unsupported,
                         "{}: the file has {}, which is not supported with clip.projector_type mlp: only "
                         "LLaVA 1.5 is",
                         file.what(), other);
  json::object& vision = fields.vision;
  TRY(const bool gelu, file.flag("use_gelu"));
  vision["model_type"] = "clip_vision_model";
  vision["hidden_act"] = gelu ? "gelu" : "quick_gelu";
  vision["num_hidden_layers"] = vision["num_hidden_layers"].as_int64() + 1;
  fields.model["vision_feature_layer"] = -2;
  fields.model["multimodal_projector_bias"] = file.has("mm.2.bias");
  fields.processor["image_processor_type"] = "CLIPImageProcessor";
  fields.processor["size"] = json::object{{"shortest_edge", vision["image_size"]}};
  fields.processor["crop_size"] = square(vision["image_size"]);
  return {};
}

void adapt_llava(const EncoderFile& file, ModelSpec& tower) {
  tower.names.projector.matrices = {file.has("mm.0.weight") ? "mm.0" : "mm.1", "mm.2"};
  tower.names.ignorable.emplace_back("v.post_ln.*");
}

// The file lacks the limits of an image's size, and the tiles.
Result<> describe_lfm2_encoder(const EncoderFile& file, EncoderFields& fields) {
  TRY(const int positions, file.rows("v.position_embd.weight"));
  TRY(const int hidden, file.rows("mm.1.weight"));
  TRY(const int scale, scale_factor(file, 2));
  const std::int64_t token = fields.vision["patch_size"].as_int64() * scale;
  fields.vision["num_patches"] = positions;
  fields.model["downsample_factor"] = scale;
  fields.model["projector_hidden_size"] = hidden;
  fields.model["projector_bias"] = file.has("mm.1.bias");
  fields.model["projector_use_layernorm"] = file.has("mm.input_norm.weight");
  fields.processor["image_processor_type"] = "Lfm2VlImageProcessor";
  fields.processor["encoder_patch_size"] = fields.vision["patch_size"];
  fields.processor["downsample_factor"] = scale;
  fields.processor["tile_size"] = std::max(kLfm2Tile / token, std::int64_t{1}) * token;
  return {};
}

void adapt_lfm2(const EncoderFile&, ModelSpec& tower) {
  tower.inputs.image->storage = PatchStorage::convolution;
  tower.names.projector.norm = "mm.input_norm";
  tower.names.projector.matrices = {"mm.1", "mm.2"};
}

Result<> describe_internvl_encoder(const EncoderFile& file, EncoderFields& fields) {
  json::object& vision = fields.vision;
  TRY(const bool silu, file.flag("use_silu"));
  if (silu)
    return field_failure("mmproj", ErrorCode::unsupported,
                         "{}: clip.use_silu is true, but only false is supported in InternVL's encoders",
                         file.what());
  vision["hidden_act"] = "gelu";
  vision["norm_type"] = file.has("v.blk.0.ln1.bias") ? "layer_norm" : "rms_norm";
  vision["attention_bias"] = file.has("v.blk.0.attn_q.bias") || file.has("v.blk.0.attn_qkv.bias");
  vision["use_qk_norm"] = file.has("v.blk.0.attn_q_norm.weight");
  TRY(const int scale, scale_factor(file, 2));
  TRY(const int least, file.integer("preproc_min_tiles", {1, 64}, 1));
  TRY(const int most, file.integer("preproc_max_tiles", {1, 64}, 12));
  fields.model["downsample_ratio"] = 1.0 / scale;
  fields.processor["image_processor_type"] = "GotOcr2ImageProcessor";
  fields.processor["size"] = square(vision["image_size"]);
  fields.processor["min_patches"] = least;
  fields.processor["max_patches"] = most;
  return {};
}

void adapt_internvl(const EncoderFile&, ModelSpec& tower) {
  tower.names.projector.norm = "mm.model.mlp.0";
  tower.names.projector.matrices = {"mm.model.mlp.1", "mm.model.mlp.3"};
}

Result<> describe_llama4_encoder(const EncoderFile& file, EncoderFields& fields) {
  json::object& vision = fields.vision;
  TRY(const int scale, scale_factor(file, 2));
  TRY(const int inner, file.rows("mm.model.mlp.1.weight"));
  TRY(const int outer, file.rows("mm.model.mlp.2.weight"));
  vision["hidden_act"] = "gelu";
  vision["pixel_shuffle_ratio"] = 1.0 / scale;
  vision["projector_input_dim"] = inner;
  vision["projector_output_dim"] = outer;
  vision["vision_output_dim"] = outer;
  fields.processor["image_processor_type"] = "Llama4ImageProcessor";
  fields.processor["size"] = square(vision["image_size"]);
  return {};
}

void adapt_llama4(const EncoderFile&, ModelSpec& tower) {
  tower.names.embedding.positions = "v.position_embd.weight";
  tower.names.projector.matrices = {"mm.model.mlp.1", "mm.model.mlp.2", "mm.model.fc"};
}

}  // namespace octavo
