// The architectures that Octavo knows: config.json -> ModelSpec.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "model/config.h"
#include "model/spec.h"

namespace octavo {

struct Family {
  std::string_view architecture;  // as in config.json's "architectures"
  Result<ModelSpec> (*describe)(const Config&);
};

// Ascending by architecture.
std::span<const Family> families();

// What transformers takes for fields that a config.json of this architecture leaves out: a JSON object. Made
// by tools/families/config_defaults.py.
std::string_view field_defaults(std::string_view architecture);

// Finds the family by config.architectures[0] and describes the network. Errors: invalid_argument naming the
// field, unsupported listing what is supported.
Result<ModelSpec> describe(const Config& config);

Result<ModelSpec> describe_afmoe(const Config& config);
Result<ModelSpec> describe_apertus(const Config& config);
Result<ModelSpec> describe_arcee(const Config& config);
Result<ModelSpec> describe_axk1(const Config& config);
Result<ModelSpec> describe_baichuan(const Config& config);
Result<ModelSpec> describe_baichuan_13b(const Config& config);
Result<ModelSpec> describe_bailing(const Config& config);
Result<ModelSpec> describe_bailing_hybrid(const Config& config);
Result<ModelSpec> describe_bamba(const Config& config);
Result<ModelSpec> describe_bart(const Config& config);
Result<ModelSpec> describe_mbart(const Config& config);
Result<ModelSpec> describe_bert(const Config& config);
Result<ModelSpec> describe_bert_classifier(const Config& config);
Result<ModelSpec> describe_bert_filler(const Config& config);
Result<ModelSpec> describe_bloom(const Config& config);
Result<ModelSpec> describe_chatglm(const Config& config);
Result<ModelSpec> describe_cohere(const Config& config);
Result<ModelSpec> describe_cohere2(const Config& config);
Result<ModelSpec> describe_cohere2_moe(const Config& config);
Result<ModelSpec> describe_cwm(const Config& config);
Result<ModelSpec> describe_dbrx(const Config& config);
Result<ModelSpec> describe_deepseek_v1(const Config& config);
Result<ModelSpec> describe_colbert(const Config& config);
Result<ModelSpec> describe_colbert_modernbert(const Config& config);
Result<ModelSpec> describe_deepseek_v2(const Config& config);
Result<ModelSpec> describe_deepseek_v3(const Config& config);
Result<ModelSpec> describe_deepseek_v32(const Config& config);
Result<ModelSpec> describe_deepseek_v4(const Config& config);
Result<ModelSpec> describe_glm_dsa(const Config& config);
Result<ModelSpec> describe_dots1(const Config& config);
Result<ModelSpec> describe_ernie(const Config& config);
Result<ModelSpec> describe_ernie_moe(const Config& config);
Result<ModelSpec> describe_exaone(const Config& config);
Result<ModelSpec> describe_exaone4(const Config& config);
Result<ModelSpec> describe_exaone4_text(const Config& config);
Result<ModelSpec> describe_exaone_moe(const Config& config);
Result<ModelSpec> describe_falcon(const Config& config);
Result<ModelSpec> describe_falcon_h1(const Config& config);
Result<ModelSpec> describe_falcon_mamba(const Config& config);
Result<ModelSpec> describe_flex_olmo(const Config& config);
Result<ModelSpec> describe_gemma(const Config& config);
Result<ModelSpec> describe_gemma2(const Config& config);
Result<ModelSpec> describe_gemma3(const Config& config);
Result<ModelSpec> describe_gemma3_vision(const Config& config);
Result<ModelSpec> describe_gemma3n(const Config& config);
Result<ModelSpec> describe_gemma4(const Config& config);
Result<ModelSpec> describe_gemma4_vision(const Config& config);
Result<ModelSpec> describe_glm(const Config& config);
Result<ModelSpec> describe_glm4(const Config& config);
Result<ModelSpec> describe_glm4_moe(const Config& config);
Result<ModelSpec> describe_gpt2(const Config& config);
Result<ModelSpec> describe_gpt_bigcode(const Config& config);
Result<ModelSpec> describe_gpt_neox(const Config& config);
Result<ModelSpec> describe_gpt_oss(const Config& config);
Result<ModelSpec> describe_gptj(const Config& config);
Result<ModelSpec> describe_granite(const Config& config);
Result<ModelSpec> describe_granite_moe(const Config& config);
Result<ModelSpec> describe_granite_moe_hybrid(const Config& config);
Result<ModelSpec> describe_granite_moe_shared(const Config& config);
Result<ModelSpec> describe_granite_moe_swa(const Config& config);
Result<ModelSpec> describe_granite_swa(const Config& config);
Result<ModelSpec> describe_gte(const Config& config);
Result<ModelSpec> describe_gte_classifier(const Config& config);
Result<ModelSpec> describe_helium(const Config& config);
Result<ModelSpec> describe_hunyuan(const Config& config);
Result<ModelSpec> describe_hunyuan_moe(const Config& config);
Result<ModelSpec> describe_hunyuan_v3(const Config& config);
Result<ModelSpec> describe_hyperclovax(const Config& config);
Result<ModelSpec> describe_idefics3(const Config& config);
Result<ModelSpec> describe_internlm(const Config& config);
Result<ModelSpec> describe_iquest_coder(const Config& config);
Result<ModelSpec> describe_internlm2(const Config& config);
Result<ModelSpec> describe_internlm3(const Config& config);
Result<ModelSpec> describe_internvl(const Config& config);
Result<ModelSpec> describe_jais2(const Config& config);
Result<ModelSpec> describe_jina_v3(const Config& config);
Result<ModelSpec> describe_jamba(const Config& config);
Result<ModelSpec> describe_kimi_linear(const Config& config);
Result<ModelSpec> describe_kimi_text(const Config& config);
Result<ModelSpec> describe_lfm2(const Config& config);
Result<ModelSpec> describe_lfm2_moe(const Config& config);
Result<ModelSpec> describe_llama(const Config& config);
Result<ModelSpec> describe_llama4(const Config& config);
Result<ModelSpec> describe_llava(const Config& config);
Result<ModelSpec> describe_llava_next(const Config& config);
Result<ModelSpec> describe_llava_onevision(const Config& config);
Result<ModelSpec> describe_longcat(const Config& config);
Result<ModelSpec> describe_mamba(const Config& config);
Result<ModelSpec> describe_mamba2(const Config& config);
Result<ModelSpec> describe_mellum(const Config& config);
Result<ModelSpec> describe_mimo(const Config& config);
Result<ModelSpec> describe_mimo_v2(const Config& config);
Result<ModelSpec> describe_minicpm(const Config& config);
Result<ModelSpec> describe_minicpm3(const Config& config);
Result<ModelSpec> describe_minimax(const Config& config);
Result<ModelSpec> describe_minimax_m2(const Config& config);
Result<ModelSpec> describe_ministral3(const Config& config);
Result<ModelSpec> describe_mistral(const Config& config);
Result<ModelSpec> describe_mistral3(const Config& config);
Result<ModelSpec> describe_mistral3_text(const Config& config);
Result<ModelSpec> describe_mistral_large3(const Config& config);
Result<ModelSpec> describe_mistral4(const Config& config);
Result<ModelSpec> describe_mixtral(const Config& config);
Result<ModelSpec> describe_modernbert(const Config& config);
Result<ModelSpec> describe_modernbert_classifier(const Config& config);
Result<ModelSpec> describe_mpt(const Config& config);
Result<ModelSpec> describe_nemotron(const Config& config);
Result<ModelSpec> describe_nemotron_h(const Config& config);
Result<ModelSpec> describe_nemotron_nas(const Config& config);
Result<ModelSpec> describe_nomic_bert(const Config& config);
Result<ModelSpec> describe_olmo(const Config& config);
Result<ModelSpec> describe_olmo2(const Config& config);
Result<ModelSpec> describe_olmo3(const Config& config);
Result<ModelSpec> describe_olmo_hybrid(const Config& config);
Result<ModelSpec> describe_olmoe(const Config& config);
Result<ModelSpec> describe_opt(const Config& config);
Result<ModelSpec> describe_orion(const Config& config);
Result<ModelSpec> describe_pangu(const Config& config);
Result<ModelSpec> describe_pangu_ultra(const Config& config);
Result<ModelSpec> describe_param2(const Config& config);
Result<ModelSpec> describe_phi(const Config& config);
Result<ModelSpec> describe_phi3(const Config& config);
Result<ModelSpec> describe_phi4_multimodal(const Config& config);
Result<ModelSpec> describe_phimoe(const Config& config);
Result<ModelSpec> describe_plamo3(const Config& config);
Result<ModelSpec> describe_qwen2(const Config& config);
Result<ModelSpec> describe_qwen2_5_vl(const Config& config);
Result<ModelSpec> describe_qwen2_moe(const Config& config);
Result<ModelSpec> describe_qwen2_audio(const Config& config);
Result<ModelSpec> describe_qwen2_vl(const Config& config);
Result<ModelSpec> describe_qwen3(const Config& config);
Result<ModelSpec> describe_qwen3_5(const Config& config);
Result<ModelSpec> describe_qwen3_5_moe(const Config& config);
Result<ModelSpec> describe_qwen3_moe(const Config& config);
Result<ModelSpec> describe_qwen3_next(const Config& config);
Result<ModelSpec> describe_qwen3_5_vl(const Config& config);
Result<ModelSpec> describe_qwen3_5_moe_vl(const Config& config);
Result<ModelSpec> describe_qwen3_vl(const Config& config);
Result<ModelSpec> describe_qwen3_vl_moe(const Config& config);
Result<ModelSpec> describe_refined_web(const Config& config);
Result<ModelSpec> describe_roberta(const Config& config);
Result<ModelSpec> describe_bge_m3(const Config& config);
Result<ModelSpec> describe_roberta_classifier(const Config& config);
Result<ModelSpec> describe_roberta_filler(const Config& config);
Result<ModelSpec> describe_rwkv7(const Config& config);
Result<ModelSpec> describe_sarvam_mla(const Config& config);
Result<ModelSpec> describe_seed_oss(const Config& config);
Result<ModelSpec> describe_smollm3(const Config& config);
Result<ModelSpec> describe_solar(const Config& config);
Result<ModelSpec> describe_solar_open(const Config& config);
Result<ModelSpec> describe_stablelm(const Config& config);
Result<ModelSpec> describe_stablelm_epoch(const Config& config);
Result<ModelSpec> describe_starcoder2(const Config& config);
Result<ModelSpec> describe_step3(const Config& config);
Result<ModelSpec> describe_step3_text(const Config& config);
Result<ModelSpec> describe_step3p5(const Config& config);
Result<ModelSpec> describe_t5(const Config& config);
Result<ModelSpec> describe_telechat2(const Config& config);
Result<ModelSpec> describe_teleflm(const Config& config);
Result<ModelSpec> describe_vault_gemma(const Config& config);
Result<ModelSpec> describe_voxtral(const Config& config);
Result<ModelSpec> describe_whisper(const Config& config);
Result<ModelSpec> describe_zamba2(const Config& config);

}  // namespace octavo
