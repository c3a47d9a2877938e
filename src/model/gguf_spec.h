// Makes a model's spec from a GGUF file (the translation is in gguf/).
#pragma once

#include <string>

#include "base/error.h"
#include "model/config.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Converts the metadata to the fields of a config.json, which the model's family reads. The spec reverts what
// the conversion to GGUF changed: tensor names, the row order of queries and keys with interleaved RoPE, and
// the 1 added to Gemma's norms. Errors: unsupported (the message names the architecture or the key), or
// invalid_argument (the key and its limit). If `mmproj` is not null, the spec has this file's encoder.
Result<ModelSpec> gguf_spec(const Gguf& gguf, const Gguf* mmproj = nullptr);

// Returns an error on "model" if the file is an mmproj file, which has no language model.
Result<> check_language_model(const Gguf& gguf);

// Settings of images for a GGUF file and its mmproj file.
struct GgufImages {
  Config config;           // fields of preprocessor_config.json
  std::string model_type;  // of config.json; "": the same for all models with the image processor
  std::string token;       // text of the token that replaces an image's rows in the prompt
};
Result<GgufImages> gguf_images(const std::string& path, const std::string& mmproj);

}  // namespace octavo
