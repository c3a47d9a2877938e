#include "model/gguf/encoder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/gguf/fields.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr Config::Range kEncoderDim{1, 1 << 20};

Result<const GgufProjector*> projector_of(const EncoderFile& file) {
  std::set<std::string_view> types;
  for (const GgufProjector& row : gguf_projectors()) {
    if (row.type == file.projector() && (row.tensor.empty() || file.has(row.tensor))) return &row;
    types.insert(row.type);
  }
  return field_failure("mmproj", ErrorCode::unsupported,
                       "{}: clip.projector_type is \"{}\", which is not supported: must be one of {}",
                       file.what(), file.projector(), fmt::join(types, ", "));
}

// Sets the fields of vision_config that all encoders have.
Result<> set_layers(const EncoderFile& file, EncoderFields& fields) {
  json::object& vision = fields.vision;
  constexpr std::pair<std::string_view, std::string_view> kSizes[] = {
      {"embedding_length", "hidden_size"},
      {"block_count", "num_hidden_layers"},
      {"attention.head_count", "num_attention_heads"},
      {"patch_size", "patch_size"},
      {"image_size", "image_size"}};
  for (const auto& [key, field] : kSizes) {
    const Config::Range range =
        key == "block_count" ? Config::Range{1, std::int64_t{kGgufLayersMax}} : kEncoderDim;
    TRY(const int value, file.integer(key, range));
    vision[GgufFields::text_of(field)] = value;
  }
  if (vision["image_size"].as_int64() < vision["patch_size"].as_int64())
    return failure(ErrorCode::corrupt, "{}: clip.vision.image_size {} must be at least patch_size {}",
                   file.what(), vision["image_size"].as_int64(), vision["patch_size"].as_int64());
  // Some files have the number 0 under the key, so the tensor has the number of hidden units.
  TRY(vision["intermediate_size"],
      file.rows(file.mlp_names_exchanged() ? "v.blk.0.ffn_down.weight" : "v.blk.0.ffn_up.weight"));
  TRY(vision["layer_norm_eps"], file.number("attention.layer_norm_epsilon", {0, 1}));
  TRY(fields.processor["image_mean"], file.channels("image_mean"));
  TRY(fields.processor["image_std"], file.channels("image_std"));
  return {};
}

// Returns the id of a token that the tokenizer finds in a text, or -1.
int special_token(const std::vector<std::string_view>& tokens, const std::vector<double>& types,
                  std::string_view text) {
  constexpr double kNormalToken = 1;
  const auto found = std::ranges::find(tokens, text);
  const auto id = static_cast<std::size_t>(found - tokens.begin());
  if (text.empty() || found == tokens.end() || (id < types.size() && types[id] == kNormalToken)) return -1;
  return static_cast<int>(id);
}

}  // namespace

Result<GgufEncoder> GgufEncoder::of(const Gguf& model, const Gguf& mmproj) {
  TRY(const EncoderFile file, EncoderFile::of(mmproj));
  TRY(const GgufProjector* projector, projector_of(file));
  GgufEncoder encoder(file, projector);
  TRY_VOID(encoder.find_text(model));
  TRY_VOID(encoder.check_width(model));
  TRY_VOID(encoder.find_tokens(model));
  TRY_VOID(encoder.set_fields(model));
  return encoder;
}

Result<> GgufEncoder::find_text(const Gguf& model) {
  TRY(const auto architecture, model.metadata.text("general.architecture"));
  std::vector<std::string_view> names;
  for (const GgufProjector::Text& text : projector_->texts)
    if (!text.architecture.empty()) names.push_back(text.architecture);
  const auto* found =
      std::ranges::find(projector_->texts, architecture.value_or(""), &GgufProjector::Text::architecture);
  if (found == projector_->texts.end())
    return field_failure("mmproj", ErrorCode::unsupported,
                         "{} has the projector {}, which is not supported with {} (general.architecture {}): "
                         "the language model must have the architecture {}",
                         file_.what(), projector_->type, model.metadata.what(), architecture.value_or(""),
                         fmt::join(names, " or "));
  text_ = *found;
  return {};
}

Result<> GgufEncoder::check_width(const Gguf& model) const {
  const std::string key = fmt::format("{}.embedding_length", text_.architecture);
  TRY(const auto width, model.metadata.number(key));
  TRY(const int own,
      projector_->transposed ? file_.columns(projector_->last_matrix) : file_.rows(projector_->last_matrix));
  if (width == own) return {};
  return invalid("mmproj",
                 "{} makes rows of width {}, but {} has the width {} ({}): the files belong to different "
                 "models",
                 file_.what(), own, model.metadata.what(), width.value_or(0), key);
}

Result<> GgufEncoder::find_tokens(const Gguf& model) {
  TRY(const std::vector<std::string_view> tokens, model.metadata.texts("tokenizer.ggml.tokens"));
  TRY(const std::vector<double> types, model.metadata.numbers("tokenizer.ggml.token_type"));
  for (const std::string_view text : projector_->tokens)
    if (token_id_ < 0) {
      token_id_ = special_token(tokens, types, text);
      token_ = text;
    }
  video_token_id_ = special_token(tokens, types, projector_->video_token);
  if (token_id_ >= 0) return {};
  return field_failure("mmproj", ErrorCode::unsupported,
                       "{}: tokenizer.ggml.tokens lacks the special token {}, which replaces images in "
                       "prompts of models with the projector {}",
                       model.metadata.what(), projector_->tokens[0], projector_->type);
}

Result<> GgufEncoder::set_fields(const Gguf& model) {
  TRY_VOID(set_layers(file_, fields_));
  TRY_VOID(projector_->describe(file_, fields_));
  json::object& fields = fields_.model;
  fields["architectures"] = json::array{GgufFields::text_of(text_.family)};
  if (!text_.model_type.empty()) fields["model_type"] = GgufFields::text_of(text_.model_type);
  // The defaults of Mistral's classes have a window. Files of models without windows lack the key.
  if (text_.model_type == "mistral" &&
      !model.metadata.has(fmt::format("{}.attention.sliding_window", text_.architecture)))
    fields["sliding_window"] = nullptr;
  // Numbers of RoPE pairs for time, height, width, and a fourth axis, which has none.
  TRY(const std::vector<double> sections,
      model.metadata.numbers(fmt::format("{}.rope.dimension_sections", text_.architecture)));
  if (sections.size() >= 3)
    fields["rope_scaling"] =
        json::object{{"mrope_section", json::array(sections.begin(), sections.begin() + 3)}};
  fields["vision_config"] = fields_.vision;
  return {};
}

Config GgufEncoder::config(const Config& language_model) const {
  return language_model.with_fields_of(Config::of(fields_.model, file_.what(), {}));
}

void GgufEncoder::adapt(ModelSpec& spec) const {
  for (const char* tensors : {"v.*", "a.*", "mm.*"}) spec.names.ignorable.emplace_back(tensors);
  spec.media.token = token_id_;
  spec.media.video_token = video_token_id_;
  ModelSpec tower = *spec.media.tower;
  tower.names = file_.names();
  tower.other_names.reset();
  projector_->adapt(file_, tower);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
}

}  // namespace octavo
