// Image and audio encoders. The image encoders are like CLIP (Radford et al., 2021) and SigLIP (Zhai et al.,
// 2023): a plain transformer over the patches of a square image, with learned positions.
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// Defaults of missing fields, as in transformers' classes.
extern const std::string_view kClipDefaults, kSiglipDefaults;
// CLIP's ViT-L/14 for images of 336 x 336 pixels.
extern const std::string_view kClipLargeDefaults;

Result<ModelSpec> describe_whisper_encoder(const Config& config, const std::string& prefix);

// Adds an audio encoder to a language model in the same checkpoint. The prefixes are language_model,
// audio_tower and multi_modal_projector.
void join_hearing(ModelSpec& text, ModelSpec&& tower);

// Describes the language model of LLaVA and similar models. The model_type of text_config selects the family.
// The checkpoint must also contain vision_tower and multi_modal_projector.
Result<ModelSpec> describe_seeing_text(const Config& config);

// Sets whether embedding and output matrix are tied. As in transformers 5, the field outside text_config
// takes precedence over the field in text_config.
Result<> set_tied(ModelSpec& spec, const Config& config);

// Sets the activation of ungated MLPs from hidden_act.
Result<> set_activation(const Config& config, ModelSpec& spec);

// `config` is the complete config, `text` the language model.
Result<ModelSpec> describe_pixtral_tower(const Config& config, const ModelSpec& text);

// Describe an image encoder. `config` is the model's vision_config. The family sets merge, projector,
// out_dim, the prefixes, the projector's names, and which of the checkpoint's tensors are ignorable.
Result<ModelSpec> describe_clip(Config config, std::string_view defaults = kClipDefaults);
Result<ModelSpec> describe_siglip(Config config, std::string_view defaults = kSiglipDefaults);
// SigLIP 2 for images of any size (Tschannen et al., 2025): a grid of positions is stretched over the image.
Result<ModelSpec> describe_siglip2(Config config);

// Removes the last norm and the layers after layer `layer`, which is counted from the end: -1 is the last
// layer. Returns an error that names the field `where` if no layer is left.
Result<> cut_tower(ModelSpec& tower, int layer, const std::string& where);

}  // namespace octavo
