// Functions that set fields from metadata that only some architectures have, or fields that need more than
// one number.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

// defined in dense.cc
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

// defined in encoders.cc
Result<> translate_modernbert(GgufFields& fields);
Result<> translate_nomic_moe(GgufFields& fields);
Result<> translate_t5(GgufFields& fields);

// defined in experts.cc
Result<> translate_afmoe(GgufFields& fields);
Result<> translate_bailing_v2(GgufFields& fields);
Result<> translate_cohere2_moe(GgufFields& fields);
Result<> translate_dbrx(GgufFields& fields);
Result<> translate_hunyuan_v3(GgufFields& fields);
Result<> translate_llama4(GgufFields& fields);
// Sets the layers with experts: those that have a router.
Result<> add_expert_layers(GgufFields& fields);

// defined in gemma.cc
Result<> translate_gemma2(GgufFields& fields);
Result<> translate_gemma3(GgufFields& fields);
Result<> translate_gemma3n(GgufFields& fields);
Result<> translate_gemma4(GgufFields& fields);
Result<> translate_gemma_embedding(GgufFields& fields);

// defined in latent.cc
Result<> translate_deepseek2(GgufFields& fields);
Result<> translate_deepseek4(GgufFields& fields);
Result<> translate_glm_dsa(GgufFields& fields);
Result<> translate_kimi_linear(GgufFields& fields);
Result<> translate_minicpm3(GgufFields& fields);
Result<> translate_mistral4(GgufFields& fields);

// defined in layers.cc
Result<> translate_deci(GgufFields& fields);
Result<> translate_granite_windows(GgufFields& fields);
Result<> translate_mellum(GgufFields& fields);
Result<> translate_mimo2(GgufFields& fields);
Result<> translate_plamo3(GgufFields& fields);
Result<> translate_step35(GgufFields& fields);
// Returns the index of the first layer with a window or, if !sliding, without one. slides: per layer, 0 if it
// has no window.
std::size_t first_layer(std::span<const double> slides, bool sliding);
// Sets the layers with windows, from a list of booleans or from a period.
Result<> add_windows(GgufFields& fields);

// defined in recurrent.cc
Result<> translate_granite_hybrid(GgufFields& fields);
Result<> translate_jamba(GgufFields& fields);
Result<> translate_lfm2(GgufFields& fields);
Result<> translate_mamba(GgufFields& fields);
Result<> translate_mamba2(GgufFields& fields);
Result<> translate_minimax(GgufFields& fields);
Result<> translate_nemotron_h(GgufFields& fields);
Result<> translate_qwen_delta(GgufFields& fields);
Result<> translate_rwkv7(GgufFields& fields);
// Sets the type of each layer: layers with KV heads have attention. With `halves`, a layer is only one half;
// without KV heads, it is an MLP or experts if it has a width.
Result<> add_kinds(GgufFields& fields, bool halves = false);

}  // namespace octavo
