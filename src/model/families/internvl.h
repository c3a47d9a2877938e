// Functions for InternVL's first format, which other families also use.
#pragma once

#include <string>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// Describes an encoder with InternVL's layers from its vision_config. The caller sets the tensor names.
Result<ModelSpec> describe_internvl_encoder(Config config);

// Describes the language model, which may be of any family. llm_config or text_config is its config.json.
// `prefix` is the prefix of its names.
Result<ModelSpec> describe_inner_text(const Config& config, const std::string& prefix = "language_model.");

// Sets a projector that joins squares of patches of side 1 / downsample_ratio, and has a norm and two
// matrices. It reads the encoder's last output without the class tokens.
Result<> set_internvl_projector(ModelSpec& tower, const Config& config, int out_dim);

// Sets the placeholder token from img_context_token_id. Without this field, the token's text is `text`.
Result<> set_context_token(ModelSpec& spec, const Config& config, std::string_view text);

// Sets the names of the projector and the prefix of the encoder in the first format.
void set_mlp1_names(Names& names, const std::string& tower);

}  // namespace octavo
