#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/edit_distance.h"
#include "model/families/families.h"
#include "model/families/readers.h"
#include "model/rope.h"

namespace octavo {
namespace {

constexpr std::array kFamilies = {
    Family{"AXK1ForCausalLM", describe_axk1},
    Family{"AfmoeForCausalLM", describe_afmoe},
    Family{"ApertusForCausalLM", describe_apertus},
    Family{"AquilaForCausalLM", describe_llama},
    Family{"AquilaModel", describe_llama},
    Family{"ArceeForCausalLM", describe_arcee},
    Family{"BaiChuanForCausalLM", describe_baichuan},
    Family{"BaichuanForCausalLM", describe_baichuan_13b},
    Family{"BailingMoeForCausalLM", describe_bailing},
    Family{"BailingMoeV2ForCausalLM", describe_bailing},
    Family{"BailingMoeV2_5ForCausalLM", describe_bailing_hybrid},
    Family{"BambaForCausalLM", describe_bamba},
    Family{"BartForConditionalGeneration", describe_bart},
    Family{"BertForMaskedLM", describe_bert_filler},
    Family{"BertForSequenceClassification", describe_bert_classifier},
    Family{"BertForTokenClassification", describe_bert_token_classifier},
    Family{"BertModel", describe_bert},
    Family{"BgeM3EmbeddingModel", describe_bge_m3},
    Family{"BloomForCausalLM", describe_bloom},
    Family{"ChatGLMForConditionalGeneration", describe_chatglm},
    Family{"ChatGLMModel", describe_chatglm},
    Family{"Cohere2ForCausalLM", describe_cohere2},
    Family{"Cohere2MoeForCausalLM", describe_cohere2_moe},
    Family{"CohereForCausalLM", describe_cohere},
    Family{"ColBERTModernBertModel", describe_colbert_modernbert},
    Family{"CwmForCausalLM", describe_cwm},
    Family{"DbrxForCausalLM", describe_dbrx},
    Family{"DeciLMForCausalLM", describe_nemotron_nas},
    Family{"DeepseekForCausalLM", describe_deepseek_v1},
    Family{"DeepseekV2ForCausalLM", describe_deepseek_v2},
    Family{"DeepseekV32ForCausalLM", describe_deepseek_v32},
    Family{"DeepseekV3ForCausalLM", describe_deepseek_v3},
    Family{"DeepseekV4ForCausalLM", describe_deepseek_v4},
    Family{"Dots1ForCausalLM", describe_dots1},
    Family{"Ernie4_5ForCausalLM", describe_ernie},
    Family{"Ernie4_5_ForCausalLM", describe_ernie},
    Family{"Ernie4_5_MoeForCausalLM", describe_ernie_moe},
    Family{"EuroBertForMaskedLM", describe_eurobert},
    Family{"EuroBertModel", describe_eurobert},
    Family{"Exaone4ForCausalLM", describe_exaone4},
    Family{"Exaone4_5_ForConditionalGeneration", describe_exaone4_text},
    Family{"ExaoneForCausalLM", describe_exaone},
    Family{"ExaoneMoEForCausalLM", describe_exaone_moe},
    Family{"ExaoneMoeForCausalLM", describe_exaone_moe},
    Family{"FalconForCausalLM", describe_falcon},
    Family{"FalconH1ForCausalLM", describe_falcon_h1},
    Family{"FalconMambaForCausalLM", describe_falcon_mamba},
    Family{"FlexOlmoForCausalLM", describe_flex_olmo},
    Family{"GPT2ForSequenceClassification", describe_decoder_classifier<describe_gpt2>},
    Family{"GPT2LMHeadModel", describe_gpt2},
    Family{"GPTBigCodeForCausalLM", describe_gpt_bigcode},
    Family{"GPTJForCausalLM", describe_gptj},
    Family{"GPTNeoXForCausalLM", describe_gpt_neox},
    Family{"Gemma2ForCausalLM", describe_gemma2},
    Family{"Gemma2Model", describe_embedder<describe_gemma2>},
    Family{"Gemma3ForCausalLM", describe_gemma3},
    Family{"Gemma3ForConditionalGeneration", describe_gemma3_vision},
    Family{"Gemma3TextModel", describe_embedder<describe_gemma3>},
    Family{"Gemma3nForCausalLM", describe_gemma3n},
    Family{"Gemma3nForConditionalGeneration", describe_gemma3n},
    Family{"Gemma4ForCausalLM", describe_gemma4},
    Family{"Gemma4ForConditionalGeneration", describe_gemma4_vision},
    Family{"Gemma4UnifiedForCausalLM", describe_gemma4},
    Family{"Gemma4UnifiedForConditionalGeneration", describe_gemma4},
    Family{"GemmaForCausalLM", describe_gemma},
    Family{"GemmaForSequenceClassification", describe_decoder_classifier<describe_gemma>},
    Family{"Glm4ForCausalLM", describe_glm4},
    Family{"Glm4MoeForCausalLM", describe_glm4_moe},
    Family{"Glm4MoeLiteForCausalLM", describe_deepseek_v3},
    Family{"GlmForCausalLM", describe_glm},
    Family{"GlmMoeDsaForCausalLM", describe_glm_dsa},
    Family{"GptOssForCausalLM", describe_gpt_oss},
    Family{"GraniteForCausalLM", describe_granite},
    Family{"GraniteMoeForCausalLM", describe_granite_moe},
    Family{"GraniteMoeHybridForCausalLM", describe_granite_moe_hybrid},
    Family{"GraniteMoeSWAForCausalLM", describe_granite_moe_swa},
    Family{"GraniteMoeSharedForCausalLM", describe_granite_moe_shared},
    Family{"GraniteSWAForCausalLM", describe_granite_swa},
    Family{"GteModel", describe_gte},
    Family{"GteNewForSequenceClassification", describe_gte_classifier},
    Family{"GteNewModel", describe_gte},
    Family{"HF_ColBERT", describe_colbert},
    Family{"HYV3ForCausalLM", describe_hunyuan_v3},
    Family{"HeliumForCausalLM", describe_helium},
    Family{"HunYuanDenseV1ForCausalLM", describe_hunyuan},
    Family{"HunYuanMoEV1ForCausalLM", describe_hunyuan_moe},
    Family{"HyperCLOVAXForCausalLM", describe_hyperclovax},
    Family{"IQuestCoderForCausalLM", describe_iquest_coder},
    Family{"Idefics3ForConditionalGeneration", describe_idefics3},
    Family{"InternLM2ForCausalLM", describe_internlm2},
    Family{"InternLM2ForRewardModel", describe_internlm2_reward},
    Family{"InternLM3ForCausalLM", describe_internlm3},
    Family{"InternLMForCausalLM", describe_internlm},
    Family{"InternVLForConditionalGeneration", describe_internvl},
    Family{"Jais2ForCausalLM", describe_jais2},
    Family{"JambaForCausalLM", describe_jamba},
    Family{"JambaForSequenceClassification", describe_decoder_classifier<describe_jamba>},
    Family{"JinaEmbeddingsV3Model", describe_jina_v3},
    Family{"KimiK25ForConditionalGeneration", describe_kimi_text},
    Family{"KimiLinearForCausalLM", describe_kimi_linear},
    Family{"KimiVLForConditionalGeneration", describe_kimi_text},
    Family{"Kimi_K25ForConditionalGeneration", describe_kimi_text},
    Family{"LLaMAForCausalLM", describe_llama},
    Family{"Lfm2ForCausalLM", describe_lfm2},
    Family{"Lfm2MoeForCausalLM", describe_lfm2_moe},
    Family{"Llama4ForCausalLM", describe_llama4},
    Family{"Llama4ForConditionalGeneration", describe_llama4},
    Family{"LlamaBidirectionalForSequenceClassification", describe_llama_both_ways_classifier},
    Family{"LlamaBidirectionalModel", describe_llama_both_ways},
    Family{"LlamaForCausalLM", describe_llama},
    Family{"LlamaForSequenceClassification", describe_decoder_classifier<describe_llama>},
    Family{"LlamaModel", describe_embedder<describe_llama>},
    Family{"LlavaForConditionalGeneration", describe_llava},
    Family{"LlavaNextForConditionalGeneration", describe_llava_next},
    Family{"LlavaOnevisionForConditionalGeneration", describe_llava_onevision},
    Family{"LongcatFlashForCausalLM", describe_longcat},
    Family{"MBartForConditionalGeneration", describe_mbart},
    Family{"MPTForCausalLM", describe_mpt},
    Family{"Mamba2ForCausalLM", describe_mamba2},
    Family{"MambaForCausalLM", describe_mamba},
    Family{"MellumForCausalLM", describe_mellum},
    Family{"MiMoForCausalLM", describe_mimo},
    Family{"MiMoV2FlashForCausalLM", describe_mimo_v2},
    Family{"MiniCPM3ForCausalLM", describe_minicpm3},
    Family{"MiniCPMForCausalLM", describe_minicpm},
    Family{"MiniMaxForCausalLM", describe_minimax},
    Family{"MiniMaxM1ForCausalLM", describe_minimax},
    Family{"MiniMaxM2ForCausalLM", describe_minimax_m2},
    Family{"MiniMaxText01ForCausalLM", describe_minimax},
    Family{"Ministral3ForCausalLM", describe_ministral3},
    Family{"MinistralForCausalLM", describe_mistral},
    Family{"Mistral3ForConditionalGeneration", describe_mistral3},
    Family{"Mistral4ForCausalLM", describe_mistral4},
    Family{"MistralForCausalLM", describe_mistral},
    Family{"MistralForSequenceClassification", describe_decoder_classifier<describe_mistral>},
    Family{"MistralLarge3ForCausalLM", describe_mistral_large3},
    Family{"MistralModel", describe_embedder<describe_mistral>},
    Family{"MixtralForCausalLM", describe_mixtral},
    Family{"ModernBertForSequenceClassification", describe_modernbert_classifier},
    Family{"ModernBertForTokenClassification", describe_modernbert_token_classifier},
    Family{"ModernBertModel", describe_modernbert},
    Family{"MptForCausalLM", describe_mpt},
    Family{"NemotronForCausalLM", describe_nemotron},
    Family{"NemotronHForCausalLM", describe_nemotron_h},
    Family{"NewForSequenceClassification", describe_gte_classifier},
    Family{"NewModel", describe_gte},
    Family{"NomicBertModel", describe_nomic_bert},
    Family{"OPTForCausalLM", describe_opt},
    Family{"Olmo2ForCausalLM", describe_olmo2},
    Family{"Olmo3ForCausalLM", describe_olmo3},
    Family{"OlmoForCausalLM", describe_olmo},
    Family{"OlmoHybridForCausalLM", describe_olmo_hybrid},
    Family{"OlmoeForCausalLM", describe_olmoe},
    Family{"OrionForCausalLM", describe_orion},
    Family{"PanguEmbeddedForCausalLM", describe_pangu},
    Family{"PanguUltraMoEForCausalLM", describe_pangu_ultra},
    Family{"Param2MoEForCausalLM", describe_param2},
    Family{"Phi3ForCausalLM", describe_phi3},
    Family{"Phi4MMForCausalLM", describe_phi4_multimodal},
    Family{"Phi4MultimodalForCausalLM", describe_phi4_multimodal},
    Family{"PhiForCausalLM", describe_phi},
    Family{"PhiMoEForCausalLM", describe_phimoe},
    Family{"PhimoeForCausalLM", describe_phimoe},
    Family{"Plamo3ForCausalLM", describe_plamo3},
    Family{"Qwen2AudioForConditionalGeneration", describe_qwen2_audio},
    Family{"Qwen2ForCausalLM", describe_qwen2},
    Family{"Qwen2ForProcessRewardModel", describe_qwen2_process_reward},
    Family{"Qwen2ForRewardModel", describe_qwen2_reward},
    Family{"Qwen2ForSequenceClassification", describe_decoder_classifier<describe_qwen2>},
    Family{"Qwen2Model", describe_embedder<describe_qwen2>},
    Family{"Qwen2MoeForCausalLM", describe_qwen2_moe},
    Family{"Qwen2VLForConditionalGeneration", describe_qwen2_vl},
    Family{"Qwen2_5_VLForConditionalGeneration", describe_qwen2_5_vl},
    Family{"Qwen3ForCausalLM", describe_qwen3},
    Family{"Qwen3ForSequenceClassification", describe_decoder_classifier<describe_qwen3>},
    Family{"Qwen3Model", describe_embedder<describe_qwen3>},
    Family{"Qwen3MoeForCausalLM", describe_qwen3_moe},
    Family{"Qwen3NextForCausalLM", describe_qwen3_next},
    Family{"Qwen3VLForConditionalGeneration", describe_qwen3_vl},
    Family{"Qwen3VLMoeForConditionalGeneration", describe_qwen3_vl_moe},
    Family{"Qwen3_5ForCausalLM", describe_qwen3_5},
    Family{"Qwen3_5ForConditionalGeneration", describe_qwen3_5_vl},
    Family{"Qwen3_5MoeForCausalLM", describe_qwen3_5_moe},
    Family{"Qwen3_5MoeForConditionalGeneration", describe_qwen3_5_moe_vl},
    Family{"RWForCausalLM", describe_refined_web},
    Family{"RWKV7ForCausalLM", describe_rwkv7},
    Family{"Rnj1ForCausalLM", describe_gemma3},
    Family{"RobertaForMaskedLM", describe_roberta_filler},
    Family{"RobertaForSequenceClassification", describe_roberta_classifier},
    Family{"RobertaForTokenClassification", describe_roberta_token_classifier},
    Family{"RobertaModel", describe_roberta},
    Family{"SarvamMLAForCausalLM", describe_sarvam_mla},
    Family{"SarvamMoEForCausalLM", describe_bailing},
    Family{"SeedOssForCausalLM", describe_seed_oss},
    Family{"SmolLM3ForCausalLM", describe_smollm3},
    Family{"SmolVLMForConditionalGeneration", describe_idefics3},
    Family{"SolarForCausalLM", describe_solar},
    Family{"SolarOpenForCausalLM", describe_solar_open},
    Family{"StableLMEpochForCausalLM", describe_stablelm_epoch},
    Family{"StableLmForCausalLM", describe_stablelm},
    Family{"Starcoder2ForCausalLM", describe_starcoder2},
    Family{"Step3TextForCausalLM", describe_step3},
    Family{"Step3VLForConditionalGeneration", describe_step3_text},
    Family{"Step3p5ForCausalLM", describe_step3p5},
    Family{"Step3p7ForConditionalGeneration", describe_step3p5},
    Family{"T5EncoderModel", describe_t5_encoder},
    Family{"T5ForConditionalGeneration", describe_t5},
    Family{"TeleChat2ForCausalLM", describe_telechat2},
    Family{"TeleChat3ForCausalLM", describe_llama},
    Family{"TeleFLMForCausalLM", describe_teleflm},
    Family{"VaultGemmaForCausalLM", describe_vault_gemma},
    Family{"VoxtralForConditionalGeneration", describe_voxtral},
    Family{"VoyageQwen3BidirectionalEmbedModel", describe_voyage},
    Family{"WhisperForConditionalGeneration", describe_whisper},
    Family{"XLMRobertaForMaskedLM", describe_roberta_filler},
    Family{"XLMRobertaForSequenceClassification", describe_roberta_classifier},
    Family{"XLMRobertaForTokenClassification", describe_roberta_token_classifier},
    Family{"XLMRobertaModel", describe_roberta},
    Family{"XverseForCausalLM", describe_llama},
    Family{"YiForCausalLM", describe_llama},
    Family{"YoutuForCausalLM", describe_deepseek_v3},
    Family{"Zamba2ForCausalLM", describe_zamba2},
};
static_assert(std::ranges::is_sorted(kFamilies, {}, &Family::architecture));

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return lower;
}

// Each number of a rotary embedding may be in its range and yet all of them make no sense together.
Result<> check_ropes(const ModelSpec& spec, const Config& config) {
  for (const RopeSpec& rope : spec.ropes) {
    const std::vector<float> frequencies = rope_frequencies(rope, spec.max_positions);
    if (std::ranges::all_of(frequencies, [](float f) { return f >= 0 && f < 1e6F; })) continue;
    return invalid("rope_scaling", "{} and rope_theta give frequencies beyond [0, 1e6)",
                   config.where("rope_scaling"));
  }
  return {};
}

// The names most like this one, the most like it first.
std::vector<std::string_view> nearest(std::string_view name) {
  constexpr std::size_t kShown = 5, kLongest = 100;
  const auto distance = [name = lower_case(name.substr(0, kLongest))](std::string_view known) {
    return edit_distance(lower_case(known), name);
  };
  std::vector<std::pair<std::size_t, std::string_view>> names;
  for (const Family& family : kFamilies) names.emplace_back(distance(family.architecture), family.architecture);
  std::ranges::partial_sort(names, names.begin() + kShown);
  std::vector<std::string_view> found;
  for (std::size_t i = 0; i < kShown; ++i) found.push_back(names[i].second);
  return found;
}

// The file's. A text_config may name the language model alone, which counts where the file says nothing.
Result<std::vector<std::string>> architectures_of(const Config& config) {
  TRY(const std::vector<std::string> whole, config.outer().texts("architectures"));
  return whole.empty() ? config.texts("architectures") : whole;
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

Result<ModelSpec> describe(const Config& config) {
  TRY(const std::vector<std::string> names, architectures_of(config));
  if (names.empty()) {
    return invalid("architectures", "{} is missing; it must name the architecture",
                   config.where("architectures"));
  }
  const auto found = std::ranges::lower_bound(kFamilies, names[0], {}, &Family::architecture);
  if (found == kFamilies.end() || found->architecture != names[0]) {
    return field_failure("architectures", ErrorCode::unsupported,
                         "{}: \"{}\" is not supported; of the {} that are, the nearest by name are {}",
                         config.where("architectures"), names[0], kFamilies.size(), fmt::join(nearest(names[0]), ", "));
  }
  Config complete = config;
  complete.set_defaults(field_defaults(names[0]));
  TRY(ModelSpec spec, found->describe(complete));
  spec.architecture = names[0];
  TRY_VOID(check_ropes(spec, config));
  return spec;
}

}  // namespace octavo
