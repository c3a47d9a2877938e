// Functions of the rows in projectors.cc. describe_* sets the fields of a Hugging Face folder that are not
// equal in all encoders. adapt_* sets the projector's names, and what the conversion to GGUF has changed.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "model/gguf/encoder_file.h"
#include "model/gguf/fields.h"
#include "model/gguf/projectors.h"
#include "model/spec.h"

namespace octavo {

// Encoders of images with one size, or of tiles
Result<> describe_gemma3_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_gemma4_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_idefics3_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_internvl_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_lfm2_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_llama4_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_llava_encoder(const EncoderFile& file, EncoderFields& fields);
void adapt_gemma3(const EncoderFile& file, ModelSpec& tower);
void adapt_gemma4(const EncoderFile& file, ModelSpec& tower);
void adapt_idefics3(const EncoderFile& file, ModelSpec& tower);
void adapt_internvl(const EncoderFile& file, ModelSpec& tower);
void adapt_lfm2(const EncoderFile& file, ModelSpec& tower);
void adapt_llama4(const EncoderFile& file, ModelSpec& tower);
void adapt_llava(const EncoderFile& file, ModelSpec& tower);

// Encoders of images of any size
Result<> describe_glm_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_glm_ocr_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_lighton_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_pixtral_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_qwen2_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_qwen2_5_encoder(const EncoderFile& file, EncoderFields& fields);
Result<> describe_qwen3_encoder(const EncoderFile& file, EncoderFields& fields);
void adapt_glm(const EncoderFile& file, ModelSpec& tower);
void adapt_pixtral(const EncoderFile& file, ModelSpec& tower);
void adapt_qwen(const EncoderFile& file, ModelSpec& tower);

// Copies a field. An insertion may invalidate a reference to another field of the same object.
inline void copy_field(boost::json::object& fields, std::string_view from, std::string_view to) {
  boost::json::value same = fields[GgufFields::text_of(from)];
  fields[GgufFields::text_of(to)] = std::move(same);
}

}  // namespace octavo
