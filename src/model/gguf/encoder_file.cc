#include "model/gguf/encoder_file.h"

#include <fmt/format.h>

#include <cmath>

namespace octavo {
namespace {

// Tensors of the language model, and of encoders of sound.
constexpr std::string_view kPatterns[] = {"blk.*",          "token_embd*", "output*", "rope_f*",
                                          "position_embd*", "per_layer_*", "a.*",     "mm.a.*"};

std::string vision_key(std::string_view key) { return fmt::format("clip.vision.{}", key); }

}  // namespace

Result<EncoderFile> EncoderFile::of(const Gguf& gguf) {
  const GgufMetadata& metadata = gguf.metadata;
  TRY(const auto architecture, metadata.text("general.architecture"));
  if (architecture != kEncoderArchitecture)
    return invalid("mmproj",
                   "{}: general.architecture is \"{}\", but must be {}: give an mmproj file, which has the "
                   "model's image encoder",
                   metadata.what(), architecture.value_or(""), kEncoderArchitecture);
  TRY(auto type, metadata.text("clip.projector_type"));
  if (!type) {
    TRY(type, metadata.text("clip.vision.projector_type"));  // files with several encoders
  }
  TRY(const auto llava, metadata.boolean("clip.has_llava_projector"));
  TRY(const auto sees, metadata.boolean("clip.has_vision_encoder"));
  EncoderFile file(gguf, std::string(type.value_or(llava.value_or(false) ? "mlp" : "")));
  if (!sees.value_or(false) || gguf.find("v.patch_embd.weight") == nullptr)
    return field_failure("mmproj", ErrorCode::unsupported,
                         "{}: the file has no image encoder (clip.projector_type is \"{}\"), but only image "
                         "encoders are supported",
                         metadata.what(), file.projector_);
  return file;
}

Result<int> EncoderFile::integer(std::string_view key, Config::Range range, std::optional<int> absent) const {
  const std::string name = vision_key(key);
  TRY(const auto stored, gguf_->metadata.number(name));
  if (!stored && absent) return *absent;
  if (!stored) return field_failure(key, ErrorCode::corrupt, "{}: {} is missing", what(), name);
  if (std::floor(*stored) != *stored || *stored < static_cast<double>(range.least) ||
      *stored > static_cast<double>(range.most))
    return invalid(key, "{}: {} is {}, but must be an integer from {} to {}", what(), name, *stored,
                   range.least, range.most);
  return static_cast<int>(*stored);
}

Result<double> EncoderFile::number(std::string_view key, Config::RealRange range) const {
  const std::string name = vision_key(key);
  TRY(const auto stored, gguf_->metadata.number(name));
  if (!stored) return field_failure(key, ErrorCode::corrupt, "{}: {} is missing", what(), name);
  if (!(*stored >= range.least && *stored <= range.most))
    return invalid(key, "{}: {} is {}, but must be from {} to {}", what(), name, *stored, range.least,
                   range.most);
  return *stored;
}

Result<boost::json::array> EncoderFile::channels(std::string_view key) const {
  const std::string name = vision_key(key);
  TRY(const std::vector<double> stored, gguf_->metadata.numbers(name));
  if (stored.size() != 3)
    return field_failure(key, ErrorCode::corrupt, "{}: {} has {} numbers, but must have 3", what(), name,
                         stored.size());
  return boost::json::array(stored.begin(), stored.end());
}

Result<std::vector<double>> EncoderFile::numbers(std::string_view key) const {
  return gguf_->metadata.numbers(vision_key(key));
}

Result<bool> EncoderFile::flag(std::string_view key) const {
  TRY(const auto stored, gguf_->metadata.boolean(fmt::format("clip.{}", key)));
  return stored.value_or(false);
}

Result<const StoredTensor*> EncoderFile::matrix(std::string_view tensor) const {
  const StoredTensor* found = gguf_->find(tensor);
  if (found == nullptr || found->shape.size() < 2 || found->shape.front() > 1 << 24 ||
      found->shape.back() > 1 << 24)
    return failure(ErrorCode::corrupt, "{}: {} is missing or is not a matrix", what(), tensor);
  return found;
}

Result<int> EncoderFile::rows(std::string_view tensor) const {
  TRY(const StoredTensor* found, matrix(tensor));
  return static_cast<int>(found->shape.front());
}

Result<int> EncoderFile::columns(std::string_view tensor) const {
  TRY(const StoredTensor* found, matrix(tensor));
  return static_cast<int>(found->shape.back());
}

Result<int> EncoderFile::positions() const {
  TRY(const StoredTensor* found, matrix("v.position_embd.weight"));
  if (found->shape.size() == 3 && found->shape[1] <= 1 << 20) return static_cast<int>(found->shape[1]);
  return failure(ErrorCode::corrupt, "{}: {} has {} dimensions, but must have 3", what(), found->name,
                 found->shape.size());
}

bool EncoderFile::mlp_names_exchanged() const {
  const StoredTensor *up = gguf_->find("v.blk.0.ffn_up.weight"),
                     *down = gguf_->find("v.blk.0.ffn_down.weight"),
                     *norm = gguf_->find("v.blk.0.ln1.weight");
  if (up == nullptr || down == nullptr || norm == nullptr) return false;
  const std::int64_t dim = norm->shape.front();
  return up->shape.front() == dim && down->shape.back() == dim && up->shape.back() != dim;
}

Names EncoderFile::names() const {
  const bool exchanged = mlp_names_exchanged();
  const std::string up = exchanged ? "ffn_down" : "ffn_up";
  Names names;
  names.gguf = true;
  names.prefixes = {""};
  names.encoder.patches = "v.patch_embd";
  names.encoder.class_token = "v.class_embd";
  names.embedding.positions = "v.position_embd";
  names.embedding.norm = "v.pre_ln";
  names.layers = "v.blk.";
  names.attention.norm = "ln1";
  names.attention.qkv = {"attn_q", "attn_k", "attn_v"};
  if (has("v.blk.0.attn_qkv.weight")) names.attention.qkv = {"attn_qkv"};
  names.attention.q_norm = "attn_q_norm";
  names.attention.k_norm = "attn_k_norm";
  names.attention.out = "attn_out";
  if (has("v.blk.0.ls1.weight")) names.attention.out_scale = "ls1.weight";
  // Newer conversions of Llama 4 name the second norm as Gemma 4's norm after attention.
  names.mlp.norm = has("v.blk.0.ln2.weight") ? "ln2" : "attn_post_norm";
  names.mlp.up = {up};
  if (has("v.blk.0.ffn_gate.weight")) names.mlp.up = {"ffn_gate", up};
  names.mlp.down = exchanged ? "ffn_up" : "ffn_down";
  if (has("v.blk.0.ls2.weight")) names.mlp.down_scale = "ls2.weight";
  names.final_norm = "v.post_ln";
  names.ignorable.assign(std::begin(kPatterns), std::end(kPatterns));
  return names;
}

}  // namespace octavo
