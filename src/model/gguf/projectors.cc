#include "model/gguf/projectors.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>

#include "model/gguf/fields.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr Config::Range kScale{1, 64};
constexpr Config::Range kEncoderPixels{1, 1 << 28};

// Copies a field. An insertion may invalidate a reference to another field of the same object.
void copy_field(json::object& fields, std::string_view from, std::string_view to) {
  json::value same = fields[GgufFields::text_of(from)];
  fields[GgufFields::text_of(to)] = std::move(same);
}

json::object square(const json::value& side) { return {{"height", side}, {"width", side}}; }

// Returns the factor by which the projector shrinks a side of the grid of patches.
Result<int> scale_factor(const EncoderFile& file, int absent) {
  return file.integer("projector.scale_factor", kScale, absent);
}

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

Result<> describe_internvl_file(const EncoderFile& file, EncoderFields& fields) {
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

constexpr std::string_view kLlava = "LlavaForConditionalGeneration",
                           kMistral3 = "Mistral3ForConditionalGeneration",
                           kInternvl = "InternVLForConditionalGeneration";

constexpr std::array kProjectors = {
    GgufProjector{.type = "gemma3",
                  .texts = {{{"gemma3", "Gemma3ForConditionalGeneration"}}},
                  .tokens = {"<image_soft_token>", "[multimodal]", "<unk>"},
                  .last_matrix = "mm.input_projection.weight",
                  .transposed = true,
                  .describe = describe_gemma3_encoder,
                  .adapt = adapt_gemma3},
    GgufProjector{.type = "gemma4v",
                  .texts = {{{"gemma4", "Gemma4ForConditionalGeneration"}}},
                  .tokens = {"<|image|>"},
                  .last_matrix = "mm.input_projection.weight",
                  .describe = describe_gemma4_encoder,
                  .adapt = adapt_gemma4},
    GgufProjector{.type = "idefics3",
                  .texts = {{{"llama", "Idefics3ForConditionalGeneration"}}},
                  .tokens = {"<image>"},
                  .last_matrix = "mm.model.fc.weight",
                  .describe = describe_idefics3_encoder,
                  .adapt = adapt_idefics3},
    GgufProjector{.type = "internvl",
                  .texts = {{{"llama", kInternvl, "llama"},
                             {"qwen2", kInternvl, "qwen2"},
                             {"qwen3", kInternvl, "qwen3"},
                             {"qwen3moe", kInternvl, "qwen3_moe"}}},
                  .tokens = {"<IMG_CONTEXT>"},
                  .last_matrix = "mm.model.mlp.3.weight",
                  .describe = describe_internvl_file,
                  .adapt = adapt_internvl},
    GgufProjector{.type = "llama4",
                  .texts = {{{"llama4", "Llama4ForConditionalGeneration"}}},
                  .tokens = {"<|patch|>"},
                  .last_matrix = "mm.model.fc.weight",
                  .describe = describe_llama4_encoder,
                  .adapt = adapt_llama4},
    GgufProjector{.type = "mlp",
                  .texts = {{{"llama", kLlava, "llama"}, {"qwen2", kLlava, "qwen2"}}},
                  .tokens = {"<image>", "<unk>"},
                  .last_matrix = "mm.2.weight",
                  .describe = describe_llava_encoder,
                  .adapt = adapt_llava},
    GgufProjector{.type = "pixtral",
                  .tensor = "mm.patch_merger.weight",
                  .texts = {{{"llama", kMistral3, "mistral"}, {"mistral3", kMistral3, "ministral3"}}},
                  .tokens = {"[IMG]"},
                  .last_matrix = "mm.2.weight",
                  .describe = describe_pixtral_encoder,
                  .adapt = adapt_pixtral},
    GgufProjector{.type = "pixtral",
                  .texts = {{{"llama", kLlava, "mistral"}}},
                  .tokens = {"[IMG]"},
                  .last_matrix = "mm.2.weight",
                  .describe = describe_pixtral_encoder,
                  .adapt = adapt_pixtral},
    GgufProjector{.type = "qwen2.5vl_merger",
                  .texts = {{{"qwen2vl", "Qwen2_5_VLForConditionalGeneration"}}},
                  .tokens = {"<|image_pad|>"},
                  .video_token = "<|video_pad|>",
                  .last_matrix = "mm.2.weight",
                  .describe = describe_qwen2_5_encoder,
                  .adapt = adapt_qwen},
    GgufProjector{.type = "qwen2vl_merger",
                  .texts = {{{"qwen2vl", "Qwen2VLForConditionalGeneration"}}},
                  .tokens = {"<|image_pad|>"},
                  .video_token = "<|video_pad|>",
                  .last_matrix = "mm.2.weight",
                  .describe = describe_qwen2_encoder,
                  .adapt = adapt_qwen},
    GgufProjector{.type = "qwen3vl_merger",
                  .texts = {{{"qwen35", "Qwen3_5ForConditionalGeneration"},
                             {"qwen35moe", "Qwen3_5MoeForConditionalGeneration"},
                             {"qwen3vl", "Qwen3VLForConditionalGeneration"},
                             {"qwen3vlmoe", "Qwen3VLMoeForConditionalGeneration"}}},
                  .tokens = {"<|image_pad|>"},
                  .video_token = "<|video_pad|>",
                  .last_matrix = "mm.2.weight",
                  .describe = describe_qwen3_encoder,
                  .adapt = adapt_qwen},
};

}  // namespace

std::span<const GgufProjector> gguf_projectors() { return kProjectors; }

}  // namespace octavo
