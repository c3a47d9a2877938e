// Encoders of sound and of images; the latter as CLIP (Radford et al., 2021) and SigLIP (Zhai et al., 2023)
// have them: a plain transformer over the patches of a square image, with learned positions.
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// Defaults of absent fields in transformers' classes.
extern const std::string_view kClipDefaults, kSiglipDefaults;

// Whisper's encoder, by the fields of its configuration; names of tensors begin with `prefix`.
Result<ModelSpec> describe_whisper_encoder(const Config& config, const std::string& prefix);

// A language model and such an encoder in one checkpoint: language_model, audio_tower and multi_modal_projector.
void join_hearing(ModelSpec& text, ModelSpec&& tower);

// The language model of LLaVA and similar models, by the model_type of text_config. The names of tensors are
// those of a checkpoint that also has vision_tower and multi_modal_projector.
Result<ModelSpec> describe_seeing_text(const Config& config);

// Sets whether embedding and output matrix are one. The whole model's configuration decides if it has the
// field, as in transformers 5, else the language model's.
Result<> set_tied(ModelSpec& spec, const Config& config);

// For MLPs without gates: the activation that config.hidden_act names.
Result<> set_activation(const Config& config, ModelSpec& spec);

// Pixtral's encoder, by the configuration of the whole model and its text.
Result<ModelSpec> describe_pixtral_tower(const Config& config, const ModelSpec& text);

// `config` is the vision_config of a model. The family sets merge, projector and out_dim, the prefixes of the
// names, the names of the projector, and the other tensors of a checkpoint.
Result<ModelSpec> describe_clip(Config config, std::string_view defaults = kClipDefaults);
Result<ModelSpec> describe_siglip(Config config, std::string_view defaults = kSiglipDefaults);

// Removes everything after a layer of such an encoder, counted from the end, including the last norm.
// Error: no layer is left; it names the field `where`.
Result<> cut_tower(ModelSpec& tower, int layer, const std::string& where);

}  // namespace octavo
