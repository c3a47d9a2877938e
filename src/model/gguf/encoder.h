// Joins the GGUF file of a language model with an mmproj file. The result has the fields that the same
// model's Hugging Face folder has, so the same families and image processors read them.
#pragma once

#include <string_view>

#include "base/error.h"
#include "model/gguf/projectors.h"
#include "weights/gguf.h"

namespace octavo {

class GgufEncoder {
 public:
  // `model` and `mmproj` must outlive the object. Errors: unsupported if the projector or its combination
  // with the language model is not known; invalid_argument or corrupt if the files do not fit each other. The
  // messages name the files.
  static Result<GgufEncoder> of(const Gguf& model, const Gguf& mmproj);

  // Returns the language model's fields and those of the encoder.
  Config config(const Config& language_model) const;
  // The fields of preprocessor_config.json.
  const boost::json::object& processor() const { return fields_.processor; }
  std::string_view model_type() const { return text_.model_type; }
  // Text of the token that replaces an image's rows in the prompt.
  std::string_view token() const { return token_; }

  // Sets the encoder's tensor names, and reverts what the conversion to GGUF has changed.
  void adapt(ModelSpec& spec) const;

 private:
  GgufEncoder(const EncoderFile& file, const GgufProjector* projector) : file_(file), projector_(projector) {}
  Result<> find_text(const Gguf& model);
  Result<> check_width(const Gguf& model) const;
  Result<> find_tokens(const Gguf& model);
  Result<> set_fields(const Gguf& model);

  EncoderFile file_;
  const GgufProjector* projector_;
  GgufProjector::Text text_;
  std::string_view token_;
  int token_id_ = -1, video_token_id_ = -1;
  EncoderFields fields_;
};

}  // namespace octavo
