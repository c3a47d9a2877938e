// GLM-ASR (Z.ai, 2025): an encoder like Whisper's with RoPE instead of learned positions, a projector that
// concatenates four rows and has two matrices, and a Llama.
#include <utility>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

constexpr std::string_view kGlmAudio = R"({"hidden_act": "gelu",
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "max_position_embeddings": 1500,
    "num_attention_heads": 20,
    "num_hidden_layers": 32,
    "num_mel_bins": 128,
    "partial_rotary_factor": 0.5,
    "rope_theta": 10000,
    "vocab_size": 1})";  // required by the reader of the config, but the encoder has no vocabulary

Names glm_audio_names() {
  const std::string tower = "audio_tower.", projector = "multi_modal_projector.";
  Names names;
  names.prefixes = {tower};
  names.encoder.convolutions = {"conv1", "conv2"};
  names.final_norm = "norm";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.projector.matrices = {projector + "linear_1", projector + "linear_2"};
  return names;
}

Result<ModelSpec> describe_glm_audio(Config config, int out_dim) {
  config.set_defaults(kGlmAudio);
  TRY(ModelSpec tower, describe_dense(config, {.eps = "",
                                               .norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true},
                                               .rotary_fraction = "partial_rotary_factor"}));
  for (LayerSpec& layer : tower.layers) {
    layer.attention().mask.causal = false;
    layer.attention().biases = {.qkv = true, .out = true};
    layer.attention().biases.k = false;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  SoundInput sound{.rows = tower.max_positions, .whole = true, .trimmed = true, .out_dim = out_dim};
  TRY(sound.mels, config.integer("num_mel_bins", {1, 1024}));
  const int wide = tower.layers[0].mlp().hidden;
  sound.joined = wide / tower.dim;
  if (wide % tower.dim != 0 || sound.rows % sound.joined != 0)
    return invalid(
        "audio_config",
        "{}: intermediate_size {} must be a multiple of hidden_size {}, and their ratio must divide "
        "max_position_embeddings {}",
        config.where("intermediate_size"), wide, tower.dim, sound.rows);
  sound.projector = {.activation = Activation::gelu, .hidden = 2 * out_dim, .bias = true};
  tower.vocab = 0;
  tower.inputs.sound = sound;
  tower.names = glm_audio_names();
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_glm_asr(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY_VOID(set_tied(spec, config));
  TRY(spec.media.token, config.integer("audio_token_id", {0, kMaxVocab}, 59260));
  TRY_VOID(support(config, "projector_hidden_act", "gelu"));
  TRY(const std::optional<Config> audio, config.object("audio_config"));
  TRY(ModelSpec tower, describe_glm_audio(audio.value_or(Config()), spec.dim));
  join_hearing(spec, std::move(tower));
  return spec;
}

std::span<const Family> glm_asr_families() {
  static constexpr Family kRows[] = {{"GlmAsrForConditionalGeneration", describe_glm_asr}};
  return kRows;
}

}  // namespace octavo
