// The projectors of mmproj files that can be loaded.
#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <span>
#include <string_view>

#include "base/error.h"
#include "model/gguf/encoder_file.h"
#include "model/spec.h"

namespace octavo {

// The fields of a Hugging Face folder that describe the encoder.
struct EncoderFields {
  boost::json::object model;      // config.json
  boost::json::object vision;     // vision_config in config.json
  boost::json::object processor;  // preprocessor_config.json
};

struct GgufProjector {
  std::string_view type;         // clip.projector_type in the file
  std::string_view tensor = {};  // the file must have this tensor; rows without this field come last
  // Architecture of the language model's file, the architecture in config.json, and the field model_type.
  struct Text {
    std::string_view architecture, family, model_type = {};
  };
  std::array<Text, 4> texts;
  // Texts of the token that replaces an image's rows in the prompt. The first one in the vocabulary is used,
  // because files may lack a token that is only a placeholder.
  std::array<std::string_view, 3> tokens;
  std::string_view video_token = {};
  // The projector's last matrix. Its number of rows (columns, if `transposed`) is the width of the language
  // model.
  std::string_view last_matrix;
  bool transposed = false;
  // Sets the fields that are not equal in all encoders.
  Result<> (*describe)(const EncoderFile& file, EncoderFields& fields);
  // Sets the projector's names, and what the conversion to GGUF has changed.
  void (*adapt)(const EncoderFile& file, ModelSpec& tower);
};

std::span<const GgufProjector> gguf_projectors();

}  // namespace octavo
