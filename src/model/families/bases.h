// Functions that describe a network. Other families call them and change the result.
#pragma once

#include "base/error.h"
#include "model/config.h"
#include "model/spec.h"

namespace octavo {

Result<ModelSpec> describe_bailing_v3(const Config& config);
Result<ModelSpec> describe_cohere2(const Config& config);
Result<ModelSpec> describe_deepseek_v2(const Config& config);
Result<ModelSpec> describe_deepseek_v3(const Config& config);
// Jina v3 in its authors' format, which has the architecture name of XLM-RoBERTa (nomic_bert.cc).
Result<ModelSpec> describe_first_jina_v3(const Config& config);
Result<ModelSpec> describe_ernie(const Config& config);
Result<ModelSpec> describe_exaone4(const Config& config);
Result<ModelSpec> describe_gemma(const Config& config);
Result<ModelSpec> describe_gemma2(const Config& config);
Result<ModelSpec> describe_gemma3(const Config& config);
Result<ModelSpec> describe_gemma4(const Config& config);
Result<ModelSpec> describe_glm4(const Config& config);
Result<ModelSpec> describe_glm4_moe(const Config& config);
Result<ModelSpec> describe_glm_dsa(const Config& config);
Result<ModelSpec> describe_gpt2(const Config& config);
Result<ModelSpec> describe_hyperclovax(const Config& config);
Result<ModelSpec> describe_internlm2(const Config& config);
Result<ModelSpec> describe_lfm2(const Config& config);
Result<ModelSpec> describe_llama(const Config& config);
Result<ModelSpec> describe_llama4(const Config& config);
Result<ModelSpec> describe_minimax_m3(const Config& config);
Result<ModelSpec> describe_mistral(const Config& config);
Result<ModelSpec> describe_mistral3_text(const Config& config);
Result<ModelSpec> describe_mistral4(const Config& config);
Result<ModelSpec> describe_mixtral(const Config& config);
Result<ModelSpec> describe_phi3(const Config& config);
Result<ModelSpec> describe_qwen2(const Config& config);
Result<ModelSpec> describe_qwen3(const Config& config);
Result<ModelSpec> describe_qwen3_5(const Config& config);
Result<ModelSpec> describe_qwen3_5_moe(const Config& config);
Result<ModelSpec> describe_qwen3_moe(const Config& config);

}  // namespace octavo
