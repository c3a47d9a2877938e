// Voxtral (Liu et al., 2025): Whisper's encoder over full windows of audio, a projector that concatenates
// several rows and has two matrices, and a Mistral.
#include <utility>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The last two fields are required by the reader of the config, but the encoder does not use them.
constexpr std::string_view kVoxtralAudio = R"({"activation_function": "gelu",
    "hidden_size": 1280,
    "num_attention_heads": 20,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "max_source_positions": 1500,
    "num_mel_bins": 128,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

Result<ModelSpec> describe_voxtral_tower(Config config, int out_dim) {
  config.set_defaults(kVoxtralAudio);
  TRY_VOID(refuse(config, "scale_embedding", true));
  TRY(ModelSpec tower,
      describe_whisper_encoder(config.with_names({{"d_model", "hidden_size"},
                                                  {"encoder_layers", "num_hidden_layers"},
                                                  {"encoder_attention_heads", "num_attention_heads"},
                                                  {"encoder_ffn_dim", "intermediate_size"}}),
                               "audio_tower."));
  SoundInput& sound = *tower.inputs.sound;
  const int wide = tower.layers[0].mlp().hidden;
  sound.joined = wide / tower.dim;
  if (wide % tower.dim != 0 || sound.rows % sound.joined != 0)
    return invalid("audio_config",
                   "{}: intermediate_size {} must be a multiple of hidden_size {}, and their ratio must "
                   "divide max_source_positions {}",
                   config.where("intermediate_size"), wide, tower.dim, sound.rows);
  sound.whole = true;
  sound.out_dim = out_dim;
  sound.projector = {.activation = Activation::gelu, .hidden = out_dim};
  tower.names.projector.matrices = {"multi_modal_projector.linear_1", "multi_modal_projector.linear_2"};
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_voxtral(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY(spec.media.token, config.integer("audio_token_id", {0, kMaxVocab}, 24));
  TRY(const std::string activation, config.text("projector_hidden_act", "gelu"));
  if (activation != "gelu")
    return field_failure("projector_hidden_act", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be gelu",
                         config.where("projector_hidden_act"), activation);
  TRY(const std::optional<Config> audio, config.object("audio_config"));
  TRY(ModelSpec tower, describe_voxtral_tower(audio.value_or(Config()), spec.dim));
  join_hearing(spec, std::move(tower));
  return spec;
}

std::span<const Family> voxtral_families() {
  static constexpr Family kRows[] = {{"VoxtralForConditionalGeneration", describe_voxtral}};
  return kRows;
}

}  // namespace octavo
