// Functions that translate keys that only some architectures have. gguf/architectures.cc assigns them to
// architectures.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

// dense.cc
Result<> translate_baichuan(GgufFields& fields);
Result<> translate_exaone(GgufFields& fields);
Result<> translate_exaone4(GgufFields& fields);
Result<> translate_falcon(GgufFields& fields);
Result<> translate_llama(GgufFields& fields);
Result<> translate_minicpm(GgufFields& fields);
Result<> translate_mistral3(GgufFields& fields);
Result<> translate_mpt(GgufFields& fields);
Result<> translate_neox(GgufFields& fields);
Result<> translate_orion(GgufFields& fields);
Result<> translate_starcoder(GgufFields& fields);

// encoders.cc
Result<> translate_modernbert(GgufFields& fields);
Result<> translate_nomic_moe(GgufFields& fields);
Result<> translate_t5(GgufFields& fields);

// experts.cc
Result<> translate_afmoe(GgufFields& fields);
Result<> translate_bailing_v2(GgufFields& fields);
Result<> translate_cohere2_moe(GgufFields& fields);
Result<> translate_dbrx(GgufFields& fields);
Result<> translate_hunyuan_v3(GgufFields& fields);
Result<> translate_llama4(GgufFields& fields);
// Gives experts to the layers that have a router.
Result<> add_expert_layers(GgufFields& fields);

// gemma.cc
Result<> translate_gemma2(GgufFields& fields);
Result<> translate_gemma3(GgufFields& fields);
Result<> translate_gemma3n(GgufFields& fields);
Result<> translate_gemma4(GgufFields& fields);
Result<> translate_gemma_embedding(GgufFields& fields);

// latent.cc
Result<> translate_deepseek2(GgufFields& fields);
Result<> translate_deepseek4(GgufFields& fields);
Result<> translate_glm_dsa(GgufFields& fields);
Result<> translate_kimi_linear(GgufFields& fields);
Result<> translate_minicpm3(GgufFields& fields);
Result<> translate_mistral4(GgufFields& fields);

// layers.cc
Result<> translate_deci(GgufFields& fields);
Result<> translate_granite_windows(GgufFields& fields);
Result<> translate_mellum(GgufFields& fields);
Result<> translate_mimo2(GgufFields& fields);
Result<> translate_plamo3(GgufFields& fields);
Result<> translate_step35(GgufFields& fields);
// Returns the index of the first layer with a sliding window or, if !sliding, without one. `slides` has one
// number per layer; 0 means no window.
std::size_t first_layer(std::span<const double> slides, bool sliding);
// Sets which layers have sliding windows, from a list of booleans or from a period.
Result<> add_windows(GgufFields& fields);

// recurrent.cc
Result<> translate_granite_hybrid(GgufFields& fields);
Result<> translate_jamba(GgufFields& fields);
Result<> translate_lfm2(GgufFields& fields);
Result<> translate_mamba(GgufFields& fields);
Result<> translate_mamba2(GgufFields& fields);
Result<> translate_minimax(GgufFields& fields);
Result<> translate_nemotron_h(GgufFields& fields);
Result<> translate_qwen_delta(GgufFields& fields);
Result<> translate_rwkv7(GgufFields& fields);
// Sets the type of each layer: a layer with KV heads has attention. With `halves`, a layer has only a mixer
// or only a feed-forward: a layer without KV heads is an MLP or experts if its feed-forward width is above 0.
Result<> add_kinds(GgufFields& fields, bool halves = false);

}  // namespace octavo
