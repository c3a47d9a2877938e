// Encoders of sound and of images. Image encoders are like those of CLIP (Radford et al., 2021) and SigLIP
// (Zhai et al., 2023): a plain transformer over the patches of a square image, with learned positions.
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// Defaults of missing fields, as in transformers' classes.
extern const std::string_view kClipDefaults, kSiglipDefaults;

// Describes Whisper's encoder from its configuration. prefix: prefix of the tensor names.
Result<ModelSpec> describe_whisper_encoder(const Config& config, const std::string& prefix);

// Adds a sound encoder to a language model in the same checkpoint. Prefixes: language_model, audio_tower and
// multi_modal_projector.
void join_hearing(ModelSpec& text, ModelSpec&& tower);

// Describes the language model of LLaVA and similar models, selected by the model_type of text_config. Tensor
// names are those of a checkpoint that also contains vision_tower and multi_modal_projector.
Result<ModelSpec> describe_seeing_text(const Config& config);

// Sets whether embedding and output matrix are tied. The field outside text_config has priority over the
// language model's, as in transformers 5.
Result<> set_tied(ModelSpec& spec, const Config& config);

// Sets the activation from config.hidden_act, for MLPs without gates.
Result<> set_activation(const Config& config, ModelSpec& spec);

// Describes Pixtral's encoder. config: the complete config; text: spec of the language model.
Result<ModelSpec> describe_pixtral_tower(const Config& config, const ModelSpec& text);

// Describes a CLIP encoder. config: the vision_config of a model. The family sets merge, projector, out_dim,
// the prefixes of names, the projector's names, and the checkpoint's other tensors.
Result<ModelSpec> describe_clip(Config config, std::string_view defaults = kClipDefaults);
Result<ModelSpec> describe_siglip(Config config, std::string_view defaults = kSiglipDefaults);

// Removes the layers after layer `layer` of such an encoder, counted from the end, and the last norm. Returns
// an error that names the field `where` if no layer is left.
Result<> cut_tower(ModelSpec& tower, int layer, const std::string& where);

}  // namespace octavo
