// Qwen2-Audio (Chu et al., 2024): Whisper's encoder, a projector that averages two rows, then has a norm and
// one matrix, and a Qwen2. The encoder does not see the silence after the audio.
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The last two fields are required by the reader of the config, but the encoder does not use them.
constexpr std::string_view kQwen2Audio = R"({"activation_function": "gelu",
    "d_model": 1280,
    "encoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "encoder_layers": 32,
    "max_source_positions": 1500,
    "num_mel_bins": 128,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

Result<ModelSpec> describe_qwen2_audio_tower(Config config, int out_dim) {
  config.set_defaults(kQwen2Audio);
  TRY(ModelSpec tower, describe_whisper_encoder(config, "audio_tower."));
  tower.inputs.sound->joined = 2;
  tower.inputs.sound->out_dim = out_dim;
  tower.inputs.sound->projector = {.mean = true, .norm = std::exchange(tower.final_norm, {}), .bias = true};
  tower.names.final_norm = "";
  tower.names.projector.matrices = {"multi_modal_projector.linear"};
  tower.names.projector.norm = "audio_tower.layer_norm";
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_qwen2_audio(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  TRY(spec.media.token, config.integer("audio_token_index", {0, kMaxVocab}, 151646));
  TRY(const std::optional<Config> audio, config.object("audio_config"));
  TRY(ModelSpec tower, describe_qwen2_audio_tower(audio.value_or(Config()), spec.dim));
  join_hearing(spec, std::move(tower));
  return spec;
}

// Audio Flamingo 3 (Goel et al., 2025): Qwen2-Audio with a projector of two matrices.
static Result<ModelSpec> describe_audio_flamingo3(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  TRY(spec.media.token, config.integer("audio_token_id", {0, kMaxVocab}, 151669));
  TRY_VOID(support(config, "projector_hidden_act", "gelu"));
  TRY(const std::optional<Config> audio, config.object("audio_config"));
  const Config encoder =
      audio.value_or(Config()).with_names({{"d_model", "hidden_size"},
                                           {"encoder_layers", "num_hidden_layers"},
                                           {"encoder_attention_heads", "num_attention_heads"},
                                           {"encoder_ffn_dim", "intermediate_size"}});
  TRY_VOID(refuse(encoder, "scale_embedding", true));
  TRY(ModelSpec tower, describe_qwen2_audio_tower(encoder, spec.dim));
  Projector& projector = tower.inputs.sound->projector;
  projector.activation = Activation::gelu;
  projector.hidden = spec.dim;
  TRY(projector.bias, config.boolean("projector_bias", true));
  tower.names.projector.matrices = {"multi_modal_projector.linear_1", "multi_modal_projector.linear_2"};
  join_hearing(spec, std::move(tower));
  return spec;
}

std::span<const Family> qwen2_audio_families() {
  static constexpr Family kRows[] = {
      {"AudioFlamingo3ForConditionalGeneration", describe_audio_flamingo3},
      {"Qwen2AudioForConditionalGeneration", describe_qwen2_audio},
  };
  return kRows;
}

}  // namespace octavo
