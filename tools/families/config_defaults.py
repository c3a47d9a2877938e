#!/usr/bin/env python3
"""Writes src/model/families/defaults.json: the defaults of transformers for the fields that a config.json may omit.

    pip install transformers; tools/families/config_defaults.py [--check]

For each architecture, it contains the fields that the families read, with the defaults of the configuration class of
transformers. Fields with the default None are omitted: the families derive them (key heads from query heads, the size
of a head from the width), or None means that the feature is off. --check writes nothing, and fails if the table is
out of date.
"""

import importlib
import json
import pathlib
import re
import sys

import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = ROOT / "src/model/families"
FILE = FAMILIES / "defaults.json"

# Architecture: module and class of its configuration. None: only in GIVEN.
CLASSES = {
    "AXK1ForCausalLM": ("axk1", "AXK1Config"),
    "AfmoeForCausalLM": ("afmoe", "AfmoeConfig"),
    "AliceAIForCausalLM": ("qwen3_next", "Qwen3NextConfig"),
    "Alpamayo2Super": None,
    "ApertusForCausalLM": ("apertus", "ApertusConfig"),
    "AquilaForCausalLM": ("llama", "LlamaConfig"),
    "AquilaModel": ("llama", "LlamaConfig"),
    "ArceeForCausalLM": ("arcee", "ArceeConfig"),
    "AudioFlamingo3ForConditionalGeneration": ("qwen2", "Qwen2Config"),
    "BaiChuanForCausalLM": ("llama", "LlamaConfig"),
    "BaichuanForCausalLM": ("llama", "LlamaConfig"),
    "BailingMoeForCausalLM": ("llama", "LlamaConfig"),
    "BailingMoeV2ForCausalLM": ("llama", "LlamaConfig"),
    "BailingMoeV2_5ForCausalLM": ("deepseek_v3", "DeepseekV3Config"),
    "BailingMoeV3ForCausalLM": ("deepseek_v3", "DeepseekV3Config"),
    "BailingMoeV3VLForConditionalGeneration": ("deepseek_v3", "DeepseekV3Config"),
    "BambaForCausalLM": ("bamba", "BambaConfig"),
    "BartForConditionalGeneration": ("bart", "BartConfig"),
    "BeamForCausalLM": None,
    "BeeForConditionalGeneration": ("qwen3", "Qwen3Config"),
    "BertForMaskedLM": ("bert", "BertConfig"),
    "BertForSequenceClassification": ("bert", "BertConfig"),
    "BertForTokenClassification": ("bert", "BertConfig"),
    "BertModel": ("bert", "BertConfig"),
    "BertSpladeSparseEmbeddingModel": ("bert", "BertConfig"),
    "BgeM3EmbeddingModel": ("xlm_roberta", "XLMRobertaConfig"),
    "BloomForCausalLM": ("bloom", "BloomConfig"),
    "CLIPModel": ("clip", "CLIPTextConfig"),
    "ChatGLMForConditionalGeneration": ("glm", "GlmConfig"),
    "ChatGLMModel": ("glm", "GlmConfig"),
    "Cohere2ForCausalLM": ("cohere2", "Cohere2Config"),
    "Cohere2MoeForCausalLM": ("cohere2_moe", "Cohere2MoeConfig"),
    "Cohere2VisionForConditionalGeneration": ("cohere2", "Cohere2Config"),
    "CohereForCausalLM": ("cohere", "CohereConfig"),
    "ColBERTJinaRobertaModel": ("jina_embeddings_v3", "JinaEmbeddingsV3Config"),
    "ColBERTLfm2Model": ("lfm2", "Lfm2Config"),
    "ColBERTModernBertModel": ("modernbert", "ModernBertConfig"),
    "ColModernVBertForRetrieval": ("modernbert", "ModernBertConfig"),
    "ColPaliForRetrieval": None,
    "ColQwen3": ("qwen3", "Qwen3Config"),
    "ColQwen3_5": ("qwen3_5", "Qwen3_5TextConfig"),
    "Cosmos3EdgeForConditionalGeneration": ("cosmos3_edge", "Cosmos3EdgeTextConfig"),
    "Cosmos3ForConditionalGeneration": ("qwen3_vl", "Qwen3VLTextConfig"),
    "Cosmos3OmniForConditionalGeneration": ("qwen3_vl", "Qwen3VLTextConfig"),
    "CwmForCausalLM": ("cwm", "CwmConfig"),
    "DbrxForCausalLM": ("dbrx", "DbrxConfig"),
    "DeciLMForCausalLM": ("llama", "LlamaConfig"),
    "DeepseekForCausalLM": ("llama", "LlamaConfig"),
    "DeepseekV2ForCausalLM": ("deepseek_v2", "DeepseekV2Config"),
    "DeepseekV32ForCausalLM": ("deepseek_v32", "DeepseekV32Config"),
    "DeepseekV3BidirectionalModel": ("deepseek_v3", "DeepseekV3Config"),
    "DeepseekV3ForCausalLM": ("deepseek_v3", "DeepseekV3Config"),
    "DeepseekV4ForCausalLM": ("deepseek_v4", "DeepseekV4Config"),
    "DomynEdgeForCausalLM": None,
    "DoryForCausalLM": None,
    "Dots1ForCausalLM": ("dots1", "Dots1Config"),
    "DotsOCRForCausalLM": ("qwen2", "Qwen2Config"),
    "Eagle2_5_VLForConditionalGeneration": None,
    "EmbeddingGemma2Model": ("embedding_gemma2", "EmbeddingGemma2TextConfig"),
    "Ernie4_5ForCausalLM": ("ernie4_5", "Ernie4_5Config"),
    "Ernie4_5_ForCausalLM": ("ernie4_5", "Ernie4_5Config"),
    "Ernie4_5_MoeForCausalLM": ("ernie4_5_moe", "Ernie4_5_MoeConfig"),
    "EuroBertForMaskedLM": ("eurobert", "EuroBertConfig"),
    "EuroBertModel": ("eurobert", "EuroBertConfig"),
    "Exaone4ForCausalLM": ("exaone4", "Exaone4Config"),
    "Exaone4_5_ForConditionalGeneration": ("exaone4", "Exaone4Config"),
    "ExaoneForCausalLM": ("llama", "LlamaConfig"),
    "ExaoneMoEForCausalLM": ("exaone_moe", "ExaoneMoeConfig"),
    "ExaoneMoeForCausalLM": ("exaone_moe", "ExaoneMoeConfig"),
    "FalconForCausalLM": ("falcon", "FalconConfig"),
    "FalconH1ForCausalLM": ("falcon_h1", "FalconH1Config"),
    "FalconMambaForCausalLM": ("falcon_mamba", "FalconMambaConfig"),
    "FlintForCausalLM": ("flint", "FlintConfig"),
    "FlexOlmoForCausalLM": ("flex_olmo", "FlexOlmoConfig"),
    "GPT2ForSequenceClassification": ("gpt2", "GPT2Config"),
    "GPT2LMHeadModel": ("gpt2", "GPT2Config"),
    "GPTBigCodeForCausalLM": ("gpt_bigcode", "GPTBigCodeConfig"),
    "GPTJForCausalLM": ("gptj", "GPTJConfig"),
    "GPTNeoXForCausalLM": ("gpt_neox", "GPTNeoXConfig"),
    "Gemma2ForCausalLM": ("gemma2", "Gemma2Config"),
    "Gemma2Model": ("gemma2", "Gemma2Config"),
    "Gemma3ForCausalLM": ("gemma3", "Gemma3TextConfig"),
    "Gemma3ForConditionalGeneration": ("gemma3", "Gemma3TextConfig"),
    "Gemma3TextModel": ("gemma3", "Gemma3TextConfig"),
    "Gemma3nForCausalLM": ("gemma3n", "Gemma3nTextConfig"),
    "Gemma3nForConditionalGeneration": ("gemma3n", "Gemma3nTextConfig"),
    "Gemma4ForCausalLM": ("gemma4", "Gemma4TextConfig"),
    "Gemma4ForConditionalGeneration": ("gemma4", "Gemma4TextConfig"),
    "Gemma4UnifiedForCausalLM": ("gemma4_unified", "Gemma4UnifiedTextConfig"),
    "Gemma4UnifiedForConditionalGeneration": ("gemma4_unified", "Gemma4UnifiedTextConfig"),
    "GemmaForCausalLM": ("gemma", "GemmaConfig"),
    "GemmaForSequenceClassification": ("gemma", "GemmaConfig"),
    "Glm46VForConditionalGeneration": ("glm4v", "Glm4vTextConfig"),
    "Glm4ForCausalLM": ("glm4", "Glm4Config"),
    "Glm4MoeForCausalLM": ("glm4_moe", "Glm4MoeConfig"),
    "Glm4MoeLiteForCausalLM": ("glm4_moe_lite", "Glm4MoeLiteConfig"),
    "Glm4vForConditionalGeneration": ("glm4v", "Glm4vTextConfig"),
    "Glm4vMoeForConditionalGeneration": ("glm4v_moe", "Glm4vMoeTextConfig"),
    "GlmAsrForConditionalGeneration": ("llama", "LlamaConfig"),
    "GlmForCausalLM": ("glm", "GlmConfig"),
    "GlmMoeDsaForCausalLM": ("glm_moe_dsa", "GlmMoeDsaConfig"),
    "GlmOcrForConditionalGeneration": ("glm_ocr", "GlmOcrTextConfig"),
    "GptOssForCausalLM": ("gpt_oss", "GptOssConfig"),
    "GraniteForCausalLM": ("granite", "GraniteConfig"),
    "GraniteMoeForCausalLM": ("granitemoe", "GraniteMoeConfig"),
    "GraniteMoeHybridForCausalLM": ("granitemoehybrid", "GraniteMoeHybridConfig"),
    "GraniteMoeSWAForCausalLM": ("granitemoe_swa", "GraniteMoeSWAConfig"),
    "GraniteMoeSharedForCausalLM": ("granitemoeshared", "GraniteMoeSharedConfig"),
    "GraniteSWAForCausalLM": ("granite_swa", "GraniteSWAConfig"),
    "GteModel": ("gte", "GteConfig"),
    "GteNewForSequenceClassification": ("gte", "GteConfig"),
    "GteNewModel": ("gte", "GteConfig"),
    "H2OVLChatModel": None,
    "HCXVisionV2ForCausalLM": ("hyperclovax", "HyperCLOVAXConfig"),
    "HF_ColBERT": ("bert", "BertConfig"),
    "HYV3ForCausalLM": ("hy_v3", "HYV3Config"),
    "HYV4ForCausalLM": ("hy_v4", "HYV4Config"),
    "HeliumForCausalLM": ("helium", "HeliumConfig"),
    "HrmTextForCausalLM": None,
    "HunYuanDenseV1ForCausalLM": ("hunyuan_v1_dense", "HunYuanDenseV1Config"),
    "HunYuanMoEV1ForCausalLM": ("hunyuan_v1_moe", "HunYuanMoEV1Config"),
    "HyperCLOVAXForCausalLM": ("hyperclovax", "HyperCLOVAXConfig"),
    "HyperCLOVAXVisionV2ForConditionalGeneration": ("hyperclovax", "HyperCLOVAXConfig"),
    "IQuestCoderForCausalLM": ("iquestcoder", "IQuestCoderConfig"),
    "IQuestLoopCoderForCausalLM": ("iquestcoder", "IQuestCoderConfig"),
    "Idefics3ForConditionalGeneration": ("llama", "LlamaConfig"),
    "InternLM2ForCausalLM": ("llama", "LlamaConfig"),
    "InternLM2ForRewardModel": ("llama", "LlamaConfig"),
    "InternLM3ForCausalLM": ("internlm3", "InternLM3Config"),
    "InternLMForCausalLM": ("llama", "LlamaConfig"),
    "InternS1ForConditionalGeneration": ("qwen2", "Qwen2Config"),
    "InternS2PreviewForConditionalGeneration": ("qwen3_5_moe", "Qwen3_5MoeTextConfig"),
    "InternVLChatModel": None,
    "InternVLForConditionalGeneration": ("qwen2", "Qwen2Config"),
    "Jais2ForCausalLM": ("jais2", "Jais2Config"),
    "JambaForCausalLM": ("jamba", "JambaConfig"),
    "JambaForSequenceClassification": ("jamba", "JambaConfig"),
    "JinaEmbeddingsV3Model": ("jina_embeddings_v3", "JinaEmbeddingsV3Config"),
    "JinaEmbeddingsV5Model": ("qwen3", "Qwen3Config"),
    "KeyeForConditionalGeneration": ("qwen3", "Qwen3Config"),
    "KeyeVL1_5ForConditionalGeneration": ("qwen3", "Qwen3Config"),
    "KimiK25ForConditionalGeneration": ("deepseek_v3", "DeepseekV3Config"),
    "KimiLinearForCausalLM": ("kimi_linear", "KimiLinearConfig"),
    "KimiVLForConditionalGeneration": ("deepseek_v3", "DeepseekV3Config"),
    "Kimi_K25ForConditionalGeneration": ("deepseek_v3", "DeepseekV3Config"),
    "LLaMAForCausalLM": ("llama", "LlamaConfig"),
    "LagunaForCausalLM": ("laguna", "LagunaConfig"),
    "Lfm2BidirectionalModel": ("lfm2", "Lfm2Config"),
    "Lfm2ForCausalLM": ("lfm2", "Lfm2Config"),
    "Lfm2MoeForCausalLM": ("lfm2_moe", "Lfm2MoeConfig"),
    "Lfm2VlForConditionalGeneration": ("lfm2", "Lfm2Config"),
    "Llama4ForCausalLM": ("llama4", "Llama4TextConfig"),
    "Llama4ForConditionalGeneration": ("llama4", "Llama4TextConfig"),
    "LlamaForCausalLM": ("llama", "LlamaConfig"),
    "LlamaBidirectionalForSequenceClassification": ("llama", "LlamaConfig"),
    "LlamaBidirectionalModel": ("llama", "LlamaConfig"),
    "LlamaForSequenceClassification": ("llama", "LlamaConfig"),
    "LlamaModel": ("llama", "LlamaConfig"),
    "LightOnOCRForConditionalGeneration": ("qwen3", "Qwen3Config"),
    "LightOnOcrForConditionalGeneration": ("qwen3", "Qwen3Config"),
    "LlamaNemotronVLForSequenceClassification": None,
    "LlamaNemotronVLModel": None,
    "Llama_Nemotron_Nano_VL": None,
    "LlavaForConditionalGeneration": ("llama", "LlamaConfig"),
    "LlavaNextForConditionalGeneration": ("llama", "LlamaConfig"),
    "LlavaNextVideoForConditionalGeneration": ("llama", "LlamaConfig"),
    "LlavaOnevisionForConditionalGeneration": ("qwen2", "Qwen2Config"),
    "LongcatFlashForCausalLM": ("longcat_flash", "LongcatFlashConfig"),
    "LongcatFlashNgramForCausalLM": ("longcat_flash", "LongcatFlashConfig"),
    "MBartForConditionalGeneration": ("mbart", "MBartConfig"),
    "MPTForCausalLM": ("mpt", "MptConfig"),
    "Mamba2ForCausalLM": ("mamba2", "Mamba2Config"),
    "MambaForCausalLM": ("mamba", "MambaConfig"),
    "MellumForCausalLM": ("mellum", "MellumConfig"),
    "MiMoForCausalLM": ("qwen2", "Qwen2Config"),
    "MiMoV2FlashForCausalLM": ("mimo_v2_flash", "MiMoV2FlashConfig"),
    "MiMoV2ForCausalLM": ("mimo_v2_flash", "MiMoV2FlashConfig"),
    "MiniCPM3ForCausalLM": ("minicpm3", "MiniCPM3Config"),
    "MiniCPMForCausalLM": ("llama", "LlamaConfig"),
    "MiniMaxForCausalLM": ("minimax", "MiniMaxConfig"),
    "MiniMaxM1ForCausalLM": ("minimax", "MiniMaxConfig"),
    "MiniMaxM2ForCausalLM": ("minimax_m2", "MiniMaxM2Config"),
    "MiniMaxM3SparseForCausalLM": ("minimax_m3_vl", "MiniMaxM3VLTextConfig"),
    "MiniMaxM3SparseForConditionalGeneration": ("minimax_m3_vl", "MiniMaxM3VLTextConfig"),
    "MiniMaxText01ForCausalLM": ("minimax", "MiniMaxConfig"),
    "Ministral3ForCausalLM": ("ministral3", "Ministral3Config"),
    "MinistralForCausalLM": ("ministral", "MinistralConfig"),
    "Mistral3ForConditionalGeneration": ("mistral", "MistralConfig"),
    "Mistral4ForCausalLM": ("mistral4", "Mistral4Config"),
    "MistralForCausalLM": ("mistral", "MistralConfig"),
    "MistralForSequenceClassification": ("mistral", "MistralConfig"),
    "MistralLarge3ForCausalLM": ("mistral4", "Mistral4Config"),
    "MistralModel": ("mistral", "MistralConfig"),
    "MixtralForCausalLM": ("mixtral", "MixtralConfig"),
    "ModernBertForSequenceClassification": ("modernbert", "ModernBertConfig"),
    "ModernBertForTokenClassification": ("modernbert", "ModernBertConfig"),
    "ModernBertModel": ("modernbert", "ModernBertConfig"),
    "ModernVBertModel": ("modernbert", "ModernBertConfig"),
    "MptForCausalLM": ("mpt", "MptConfig"),
    "MuseGlimmerForCausalLM": ("muse_glimmer", "MuseGlimmerTextConfig"),
    "MuseGlimmerForConditionalGeneration": ("muse_glimmer", "MuseGlimmerTextConfig"),
    "NVLM_D": None,
    "NVLM_D_Model": None,
    "NemotronForCausalLM": ("nemotron", "NemotronConfig"),
    "NemotronHForCausalLM": ("nemotron_h", "NemotronHConfig"),
    "NemotronHPuzzleForCausalLM": ("nemotron_h", "NemotronHConfig"),
    "NemotronH_Nano_Omni_Reasoning_V3": None,
    "NemotronH_Nano_VL_V2": None,
    "NemotronH_Omni_Reasoning_V3": None,
    "NemotronH_Super_Omni_Reasoning_V3": None,
    "NewForSequenceClassification": ("gte", "GteConfig"),
    "NewModel": ("gte", "GteConfig"),
    "NomicBertModel": ("nomic_bert", "NomicBertConfig"),
    "OpenCUAForConditionalGeneration": ("qwen2", "Qwen2Config"),
    "OpsColQwen3Model": ("qwen3", "Qwen3Config"),
    "OPTForCausalLM": ("opt", "OPTConfig"),
    "Olmo2ForCausalLM": ("olmo2", "Olmo2Config"),
    "Olmo3ForCausalLM": ("olmo3", "Olmo3Config"),
    "OlmoForCausalLM": ("olmo", "OlmoConfig"),
    "OlmoHybridForCausalLM": ("olmo_hybrid", "OlmoHybridConfig"),
    "OlmoeForCausalLM": ("olmoe", "OlmoeConfig"),
    "OrionForCausalLM": ("llama", "LlamaConfig"),
    "Ovis2_5": None,
    "Ovis2_6ForCausalLM": None,
    "Ovis2_6_MoeForCausalLM": None,
    "PaliGemmaForConditionalGeneration": ("gemma", "GemmaConfig"),
    "PanguEmbeddedForCausalLM": ("llama", "LlamaConfig"),
    "PaddleOCRVLForConditionalGeneration": ("paddleocr_vl", "PaddleOCRTextConfig"),
    "PanguProMoEV2ForCausalLM": None,
    "PanguUltraMoEForCausalLM": ("deepseek_v3", "DeepseekV3Config"),
    "Param2MoEForCausalLM": ("llama", "LlamaConfig"),
    "Phi3ForCausalLM": ("phi3", "Phi3Config"),
    "Phi3VForCausalLM": ("phi3", "Phi3Config"),
    "Phi4MMForCausalLM": ("phi4_multimodal", "Phi4MultimodalConfig"),
    "Phi4MultimodalForCausalLM": ("phi4_multimodal", "Phi4MultimodalConfig"),
    "Phi4ForCausalLMV": ("phi3", "Phi3Config"),
    "PhiForCausalLM": ("phi", "PhiConfig"),
    "PhiMoEForCausalLM": ("phimoe", "PhimoeConfig"),
    "PhimoeForCausalLM": ("phimoe", "PhimoeConfig"),
    "PixtralForConditionalGeneration": None,
    "Plamo3ForCausalLM": None,
    "Qwen2AudioForConditionalGeneration": ("qwen2", "Qwen2Config"),
    "QianfanOCRForConditionalGeneration": ("qwen3", "Qwen3Config"),
    "Qwen2ForCausalLM": ("qwen2", "Qwen2Config"),
    "Qwen2ForProcessRewardModel": ("qwen2", "Qwen2Config"),
    "Qwen2ForRewardModel": ("qwen2", "Qwen2Config"),
    "Qwen2ForSequenceClassification": ("qwen2", "Qwen2Config"),
    "Qwen2Model": ("qwen2", "Qwen2Config"),
    "Qwen2MoeForCausalLM": ("qwen2_moe", "Qwen2MoeConfig"),
    "Qwen2VLForConditionalGeneration": ("qwen2_vl", "Qwen2VLTextConfig"),
    "Qwen2_5OmniForConditionalGeneration": None,
    "Qwen2_5OmniModel": None,
    "Qwen2_5_VLForConditionalGeneration": ("qwen2_5_vl", "Qwen2_5_VLTextConfig"),
    "Qwen3OmniMoeForConditionalGeneration": None,
    "Qwen3VLNemotronEmbedModel": ("qwen3", "Qwen3Config"),
    "Qwen3ForCausalLM": ("qwen3", "Qwen3Config"),
    "Qwen3ForSequenceClassification": ("qwen3", "Qwen3Config"),
    "Qwen3Model": ("qwen3", "Qwen3Config"),
    "Qwen3MoeForCausalLM": ("qwen3_moe", "Qwen3MoeConfig"),
    "Qwen3NextForCausalLM": ("qwen3_next", "Qwen3NextConfig"),
    "Qwen3VLForConditionalGeneration": ("qwen3_vl", "Qwen3VLTextConfig"),
    "Qwen3VLMoeForConditionalGeneration": ("qwen3_vl_moe", "Qwen3VLMoeTextConfig"),
    "Qwen3_5ForCausalLM": ("qwen3_5", "Qwen3_5TextConfig"),
    "Qwen3_5ForConditionalGeneration": ("qwen3_5", "Qwen3_5TextConfig"),
    "Qwen3_5MoeForCausalLM": ("qwen3_5_moe", "Qwen3_5MoeTextConfig"),
    "Qwen3_5MoeForConditionalGeneration": ("qwen3_5_moe", "Qwen3_5MoeTextConfig"),
    "RForConditionalGeneration": ("qwen3", "Qwen3Config"),
    "RWForCausalLM": ("falcon", "FalconConfig"),
    "RWKV7ForCausalLM": None,
    "Rnj1ForCausalLM": ("gemma3", "Gemma3TextConfig"),
    "RobertaForMaskedLM": ("roberta", "RobertaConfig"),
    "RobertaForSequenceClassification": ("roberta", "RobertaConfig"),
    "RobertaForTokenClassification": ("roberta", "RobertaConfig"),
    "RobertaModel": ("roberta", "RobertaConfig"),
    "SarvamMLAForCausalLM": ("deepseek_v3", "DeepseekV3Config"),
    "SarvamMoEForCausalLM": ("llama", "LlamaConfig"),
    "SeedOssForCausalLM": ("seed_oss", "SeedOssConfig"),
    "SiglipModel": ("siglip", "SiglipTextConfig"),
    "SmolLM3ForCausalLM": ("smollm3", "SmolLM3Config"),
    "SkyworkR1VChatModel": None,
    "SmolVLMForConditionalGeneration": ("llama", "LlamaConfig"),
    "SolarForCausalLM": ("llama", "LlamaConfig"),
    "SolarOpenForCausalLM": ("solar_open", "SolarOpenConfig"),
    "StableLMEpochForCausalLM": ("stablelm", "StableLmConfig"),
    "StableLmForCausalLM": ("stablelm", "StableLmConfig"),
    "Starcoder2ForCausalLM": ("starcoder2", "Starcoder2Config"),
    "Step1ForCausalLM": None,
    "Step3TextForCausalLM": ("llama", "LlamaConfig"),
    "Step3VLForConditionalGeneration": ("llama", "LlamaConfig"),
    "Step3p5ForCausalLM": ("step3p7", "Step3p7TextConfig"),
    "Step3p7ForConditionalGeneration": ("step3p7", "Step3p7TextConfig"),
    "T5EncoderModel": ("t5", "T5Config"),
    "T5ForConditionalGeneration": ("t5", "T5Config"),
    "TeleChat2ForCausalLM": ("llama", "LlamaConfig"),
    "TeleChat3ForCausalLM": ("llama", "LlamaConfig"),
    "TeleFLMForCausalLM": ("llama", "LlamaConfig"),
    "VaultGemmaForCausalLM": ("vaultgemma", "VaultGemmaConfig"),
    "VoxtralForConditionalGeneration": ("llama", "LlamaConfig"),
    "VoyageQwen3BidirectionalEmbedModel": ("qwen3", "Qwen3Config"),
    "WhisperForConditionalGeneration": ("whisper", "WhisperConfig"),
    "XLMRobertaForMaskedLM": ("xlm_roberta", "XLMRobertaConfig"),
    "XLMRobertaForSequenceClassification": ("xlm_roberta", "XLMRobertaConfig"),
    "XLMRobertaForTokenClassification": ("xlm_roberta", "XLMRobertaConfig"),
    "XLMRobertaModel": ("xlm_roberta", "XLMRobertaConfig"),
    "XverseForCausalLM": ("llama", "LlamaConfig"),
    "YiForCausalLM": ("llama", "LlamaConfig"),
    "YoutuForCausalLM": ("youtu", "YoutuConfig"),
    "Zamba2ForCausalLM": ("zamba2", "Zamba2Config"),
}

# Values that a containing class sets, that code uses instead of a field, or of architectures that
# transformers lacks.
# Nested configurations of language models have the defaults of their architecture.
GIVEN = {**dict.fromkeys(("BeeForConditionalGeneration", "RForConditionalGeneration"), {"model_type": "qwen3"}), "ColPaliForRetrieval": {},
         "Lfm2VlForConditionalGeneration": {"hidden_act": "silu"}, "ColBERTLfm2Model": {"hidden_act": "silu"}, "Cohere2VisionForConditionalGeneration": {"model_type": "cohere2"}, "InternVLChatModel": {},
         "Qwen2_5OmniForConditionalGeneration": {}, "Qwen2_5OmniModel": {}, "Qwen3OmniMoeForConditionalGeneration": {}, "SkyworkR1VChatModel": {}, "Idefics3ForConditionalGeneration": {"rms_norm_eps": 1e-5}, "SmolVLMForConditionalGeneration": {"rms_norm_eps": 1e-5},
         # as in the configuration of the whole model
         "Qwen3VLMoeForConditionalGeneration": {"tie_word_embeddings": False},
         "ExaoneForCausalLM": {"activation_function": "silu", "layer_norm_epsilon": 1e-6, "num_layers": 32},
         **dict.fromkeys(("ChatGLMForConditionalGeneration", "ChatGLMModel"), {
             "add_bias_linear": False, "apply_residual_connection_post_layernorm": False, "ffn_hidden_size": 13696,
             "kv_channels": 128, "layernorm_epsilon": 1e-5, "multi_query_group_num": 1, "num_layers": 28,
             "partial_rotary_factor": 0.5, "post_layer_norm": True, "rmsnorm": True, "seq_length": 2048}),
         "BaichuanForCausalLM": {"model_max_length": 4096},
         **dict.fromkeys(("Step3TextForCausalLM", "Step3VLForConditionalGeneration"), {
             "head_dim": 256, "hidden_size": 7168, "intermediate_size": 18432, "max_position_embedding": 65536, "moe_intermediate_size": 5120,
             "moe_num_experts": 48, "moe_top_k": 3, "norm_expert_weight": False, "num_attention_groups": 1, "num_attention_heads": 64,
             "num_hidden_layers": 61, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "share_expert_dim": 5120, "share_q_dim": 2048,
             "vocab_size": 128815}),
         "RWKV7ForCausalLM": {
             "a_low_rank_dim": 64, "decay_low_rank_dim": 64, "fuse_norm": True, "gate_low_rank_dim": 128, "head_dim": 64, "hidden_act": "sqrelu",
             "hidden_ratio": 4, "hidden_size": 2048, "norm_bias": True, "norm_eps": 1e-5, "norm_first": True, "num_hidden_layers": 24,
             "tie_word_embeddings": False, "v_low_rank_dim": 16, "vocab_size": 32000},
         **dict.fromkeys(("SarvamMLAForCausalLM", "SarvamMoEForCausalLM", "Param2MoEForCausalLM"), {
             "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "num_shared_experts": 1, "score_function": "sigmoid"}),
         "PanguUltraMoEForCausalLM": {"n_group": 1, "topk_group": 1, "rope_theta": 10000.0},
         "LagunaForCausalLM": {"first_k_dense_replace": 1},
         **dict.fromkeys(("MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration"), {"partial_rotary_factor": 0.5}),
         "AliceAIForCausalLM": {"block_attn_res_block_size": 4, "linear_num_key_heads": 32},
         "HrmTextForCausalLM": {  # of transformers
             "H_cycles": 2, "L_cycles": 3, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1536, "initializer_range": 0.02, "intermediate_size": 4096,
             "max_position_embeddings": 2048, "num_attention_heads": 12, "num_hidden_layers": 16, "prefix_lm": True, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
             "tie_word_embeddings": False, "vocab_size": 151808},
         "PanguProMoEV2ForCausalLM": {
             "first_k_dense_replace": 4, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 12288, "max_position_embeddings": 131072,
             "moe_intermediate_size": 1344, "n_group": 1, "n_routed_experts": 80, "n_shared_experts": 1, "norm_topk_prob": True, "num_attention_heads": 64,
             "num_experts_per_tok": 8, "num_hidden_layers": 50, "num_key_value_heads": 8, "param_sink_number": 128, "param_sink_with_value": True, "qk_nope_dim": 128,
             "qk_rope_dim": 64, "rms_norm_eps": 1e-5, "routed_scaling_factor": 2.5, "tie_word_embeddings": False, "topk_group": 1, "v_channels": 128, "vocab_size": 153600},
         "BeamForCausalLM": {  # of vLLM 0.33
             "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 32768, "moe_intermediate_size": 768, "norm_topk_prob": True,
             "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 24, "num_key_value_heads": 4, "rms_norm_eps": 1e-6,
             "rope_theta": 10000.0, "routed_scaling_factor": 1.0, "sliding_window": 4096, "tie_word_embeddings": False, "vocab_size": 151936},
         "DomynEdgeForCausalLM": {
             "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 32768, "num_attention_heads": 16,
             "num_hidden_layers": 2, "num_key_value_heads": 4, "position_layers": ["rope", "nope"], "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
             "tie_word_embeddings": False, "vocab_size": 128256, "window_sizes": [[511, 0], [-1, -1]]},
         "DoryForCausalLM": {
             "attention_bias": False, "head_dim": 256, "hidden_act": "silu", "hidden_size": 2560, "initializer_range": 0.02, "intermediate_size": 7168,
             "max_position_embeddings": 8192, "mlp_bias": False, "n_input_layers": 0, "n_output_layers": 0, "n_recurrent_loops": 1, "ngpt_alpha_init": 0.05,
             "num_attention_heads": 16, "num_hidden_layers": 72, "num_key_value_heads": 4, "recurrent_kv_cache_mode": "per_loop", "rope_theta": 10000.0,
             "sliding_window": 1024, "tie_word_embeddings": False, "vocab_size": 131072},
         "Step1ForCausalLM": {
             "hidden_size": 3072, "intermediate_size": 8192, "max_seq_len": 32768, "num_attention_groups": 4, "num_attention_heads": 48, "num_hidden_layers": 32,
             "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "vocab_size": 65536},
         "Plamo3ForCausalLM": {
             "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13312, "max_position_embeddings": 32768,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
             "rope_local_theta": 10000.0, "sliding_window": 2048, "sliding_window_pattern": 8, "tie_word_embeddings": False, "vocab_size": 32000},
         "SolarForCausalLM": {"bskcn_1": [12, 20, 32, 44], "bskcn_2": [20, 32], "bskcn_3": [16, 24, 36, 48], "bskcn_4": [28, 40], "bskcn_tv": [0.9, 0.8]},
         "VoxtralForConditionalGeneration": {
             "head_dim": 128, "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 131072, "num_hidden_layers": 30,
             "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 100000000.0, "vocab_size": 131072},
         "TeleChat2ForCausalLM": {"hidden_act": "silu", "max_position_embeddings": 8192},
         "TeleFLMForCausalLM": {"input_mult": 1.0, "output_mult": 1.0, "mup_scale_factor": 1.0},
         "Lfm2BidirectionalModel": {"hidden_act": "silu"}, "Lfm2ForCausalLM": {"hidden_act": "silu"}, "Lfm2MoeForCausalLM": {"hidden_act": "silu"},
         **dict.fromkeys(("BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration"), {
             "first_k_dense_replace": 1, "head_dim": 128, "layer_group_size": 8, "no_kda_lora": True, "num_nextn_predict_layers": 0,
             "short_conv_kernel_size": 4}),
         "EmbeddingGemma2Model": {"vocab_size_per_layer_input": 0}, "JinaEmbeddingsV5Model": {"is_decoder": True},
         # Nested configurations have the fields.
         **dict.fromkeys(("Alpamayo2Super", "Eagle2_5_VLForConditionalGeneration", "H2OVLChatModel", "Llama_Nemotron_Nano_VL", "NVLM_D", "NVLM_D_Model",
                          "NemotronH_Nano_Omni_Reasoning_V3", "NemotronH_Nano_VL_V2", "NemotronH_Omni_Reasoning_V3", "NemotronH_Super_Omni_Reasoning_V3",
                          "Ovis2_5", "Ovis2_6ForCausalLM", "Ovis2_6_MoeForCausalLM", "PixtralForConditionalGeneration"), {}),
         **dict.fromkeys(("LlamaNemotronVLForSequenceClassification", "LlamaNemotronVLModel"), {"llm_config": {"pooling": "avg"}}),
         "MiniCPMForCausalLM": {"dim_model_base": 1, "scale_depth": 1, "scale_emb": 1}}

# Names in older files for the numbers that transformers now stores in rope_parameters.
ROPE_NAMES = {"rope_theta": "rope_theta", "partial_rotary_factor": "partial_rotary_factor"}
ROPE_NAMES_OF = {"gpt_neox": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"}}


# Fields that a configuration's class lacks, with the values of published files or of the class's code.
DERIVED = {"glm4_moe": {"head_dim": lambda config: 128},  # otherwise half of 42 elements would rotate,
                                                          # which no code supports
           "t5": {"decoder_start_token_id": lambda config: 0, "n_positions": lambda config: 512},
           "mbart": {"decoder_start_token_id": lambda config: config.bos_token_id},  # as in generate()
           "bloom": {"seq_length": lambda config: 2048},
           "glm4_moe_lite": {"first_k_dense_replace": lambda config: config.mlp_layer_types.index("sparse")},
           "glm_moe_dsa": {"first_k_dense_replace": lambda config: config.mlp_layer_types.index("sparse")},
           "hy_v4": {"first_k_dense_replace": lambda config: config.mlp_layer_types.index("sparse"), "index_topk_freq": lambda config: 4,
                     "index_skip_topk_offset": lambda config: 2},
           "hy_v3": {"first_k_dense_replace": lambda config: config.mlp_layer_types.index("sparse"), "route_norm": lambda config: True},
           "afmoe": {"route_norm": lambda config: True},  # in the class's code
           "kimi_linear": {"first_k_dense_replace": lambda config: config.mlp_layer_types.index("sparse"),
                           "n_routed_experts": lambda config: config.num_local_experts},
           "modernbert": {"global_rope_theta": lambda config: config.rope_parameters["full_attention"]["rope_theta"]},
           "nemotron_h": {"num_hidden_layers": lambda config: config.num_hidden_layers},
           "zamba2": {"layers_block_type": lambda config: config.layers_block_type,
                      "n_mamba_heads": lambda config: 80}}  # Zamba2-2.7B's; the class's 8 heads would have
                                                            # 640 elements each


def fields_that_families_read():
    """Returns every quoted string in src/model/families that could be a field's name."""
    sources = [path.read_text() for path in FAMILIES.glob("*") if path != FILE]
    return set(re.findall(r'"([a-zA-Z_0-9]+)"', "\n".join(sources))) - {"model_type", "bos_token_id", "eos_token_id", "initializer_range"}


def defaults(module, name, read):
    kind = getattr(importlib.import_module(f"transformers.models.{module}"), name)
    found = {field: getattr(kind, field) for field in sorted(read) if hasattr(kind, field)}
    found = {field: value for field, value in found.items() if isinstance(value, (bool, int, float, str))}
    found |= {field: derive(kind()) for field, derive in DERIVED.get(module, {}).items()}
    rope = getattr(kind(), "rope_parameters", None) or {}
    if "full_attention" in rope:  # Gemma 3
        found["rope_theta"] = rope["full_attention"]["rope_theta"]
        if "sliding_attention" in rope:
            found["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = {}
    if rope.get("rope_type", "default") != "default":
        found["rope_parameters"] = rope
    for parameter, field in ROPE_NAMES_OF.get(module, ROPE_NAMES).items():
        if parameter in rope:
            found[field] = rope[parameter]
    return found


def text():
    read = fields_that_families_read()
    rows = [("", f"Made by tools/families/config_defaults.py from transformers {transformers.__version__}: do not edit.")]
    for architecture, kind in sorted(CLASSES.items()):
        found = (defaults(*kind, read) if kind else {}) | GIVEN.get(architecture, {})
        rows.append((architecture, {field: found[field] for field in sorted(found)}))
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in rows) + "\n}\n"


def main():
    made = text()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(made)
    elif FILE.read_text().split("\n", 2)[2] != made.split("\n", 2)[2]:  # for any version
        sys.exit(f"{FILE.relative_to(ROOT)} is not what transformers {transformers.__version__} gives: run {sys.argv[0]}")


if __name__ == "__main__":
    main()
