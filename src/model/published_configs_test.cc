// Tests config.json files of popular models, which lack some fields. Each must describe a network with the
// model's number of parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "kernels/backends.h"
#include "model/cache_layout.h"
#include "model/families/bases.h"
#include "model/families/families.h"
#include "model/inspect.h"
#include "model/support.h"

namespace octavo {
namespace {

struct Published {
  std::string model, config;
  std::int64_t parameters;
};
std::vector<Published> published() {
  std::ifstream file("tests/data/configs/published.jsonl");
  std::vector<Published> models;
  for (std::string line; std::getline(file, line);) {
    const auto row = boost::json::parse(line);
    models.push_back({std::string(row.at("model").as_string()), boost::json::serialize(row.at("config")),
                      row.at("parameters").as_int64()});
  }
  return models;
}

Result<ModelSpec> spec_of(std::string_view text) {
  TRY(const Config config, Config::parse(text));
  return describe(config);
}
ModelSpec spec(std::string_view model) {
  const auto all = published();
  const auto found = std::ranges::find(all, model, &Published::model);
  EXPECT_NE(found, all.end()) << model;
  return spec_of(found->config).value();
}
std::int64_t layers_with_window(const ModelSpec& spec) {
  return std::ranges::count_if(spec.layers,
                               [](const LayerSpec& layer) { return layer.attention().mask.window > 0; });
}

TEST(PublishedConfigs, EachHasAsManyParametersAsTheModel) {
  const auto all = published();
  EXPECT_GE(all.size(), 60u);
  for (const Published& one : all) {
    const auto made = spec_of(one.config);
    ASSERT_TRUE(made.has_value()) << one.model << ": " << made.error().message;
    EXPECT_EQ(count_parameters(*made).total, one.parameters) << one.model;
  }
}

TEST(PublishedConfigs, Gemma3LeavesOutWhatTransformersKnows) {
  const ModelSpec small = spec("google/gemma-3-4b-it");
  EXPECT_EQ(small.vocab, 262208);
  EXPECT_EQ(small.layers[0].attention().head_dim, 256);
  EXPECT_EQ(small.layers[0].attention().q_heads, 8);
  EXPECT_EQ(small.layers[0].attention().kv_heads, 4);
  EXPECT_EQ(small.max_positions, 131072);
  EXPECT_EQ(small.ropes[0].theta, 1e6);
  EXPECT_EQ(small.ropes[1].theta, 1e4);
  EXPECT_EQ(layers_with_window(small), 29);
  EXPECT_EQ(spec("google/gemma-3-27b-it").layers[0].attention().head_dim, 128);
}

TEST(PublishedConfigs, AnAbsentWindowIsTheDefaultAndANullIsNone) {
  EXPECT_EQ(layers_with_window(spec("mistralai/Mistral-7B-v0.1")), 32);
  EXPECT_EQ(layers_with_window(spec("mistralai/Mistral-7B-Instruct-v0.2")), 0);
  const auto absent = spec_of(R"({"architectures": ["MistralForCausalLM"]})");
  ASSERT_TRUE(absent.has_value()) << absent.error().message;
  EXPECT_EQ(absent->layers[31].attention().mask.window, 4096);
  const auto qwen = spec_of(R"({"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": true})");
  ASSERT_TRUE(qwen.has_value()) << qwen.error().message;
  EXPECT_EQ(qwen->layers[27].attention().mask.window, 0);
  EXPECT_EQ(qwen->layers[28].attention().mask.window, 4096);
}

TEST(PublishedConfigs, TransformersDefaultsOfFieldsThatChangeTheAnswer) {
  const auto gemma2 = spec_of(R"({"architectures": ["Gemma2ForCausalLM"]})");
  ASSERT_TRUE(gemma2.has_value()) << gemma2.error().message;
  EXPECT_EQ(gemma2->logits.soft_cap, 30);
  EXPECT_EQ(gemma2->layers[0].attention().scores.soft_cap, 50);
  // Gemma 3's config.json has the field, but the model ignores it.
  const auto gemma3 = spec_of(R"({"architectures": ["Gemma3ForCausalLM"], "attn_logit_softcapping": 50.0})");
  ASSERT_TRUE(gemma3.has_value()) << gemma3.error().message;
  EXPECT_EQ(gemma3->layers[0].attention().scores.soft_cap, 0);
  EXPECT_EQ(spec("google/gemma-7b").layers[0].mlp().activation, Activation::gelu_tanh);
  EXPECT_EQ(spec("microsoft/Phi-4-mini-instruct").ropes[0].rotary_dim, 96);
  const std::string factors = fmt::format("[{}]", fmt::join(std::vector<int>(48, 1), ","));
  const auto phi3 = spec_of(fmt::format(
      R"({{"architectures": ["Phi3ForCausalLM"], "max_position_embeddings": 131072, "rope_scaling":
          {{"type": "yarn", "long_factor": {}, "short_factor": {}}}}})",
      factors, factors));
  ASSERT_TRUE(phi3.has_value()) << phi3.error().message;
  EXPECT_EQ(phi3->ropes[0].scaling.kind, RopeScalingKind::longrope);
  EXPECT_EQ(phi3->max_positions, 131072);
}

// SmolVLM-256M
TEST(PublishedConfigs, SmolVlmHasAsManyParametersAsTheModel) {
  const auto made =
      spec_of(R"({"architectures": ["Idefics3ForConditionalGeneration"], "image_token_id": 49190,
      "scale_factor": 4, "text_config": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
      "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49280, "max_position_embeddings": 8192},
      "vision_config": {"hidden_size": 768, "image_size": 512, "num_attention_heads": 12, "patch_size": 16}})");
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->media.tower->inputs.image->side(), 8);
  EXPECT_EQ(count_parameters(*made).total + count_parameters(*made->media.tower).total, 256'484'928);
}

// Qwen3-VL-2B
TEST(PublishedConfigs, Qwen3VlHasAsManyParametersAsTheModel) {
  const auto made =
      spec_of(R"({"architectures": ["Qwen3VLForConditionalGeneration"], "tie_word_embeddings": true,
      "text_config": {"head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 16,
      "num_hidden_layers": 28, "num_key_value_heads": 8, "rope_theta": 5000000, "vocab_size": 151936,
      "rope_scaling": {"mrope_interleaved": true, "mrope_section": [24, 20, 20], "rope_type": "default"}},
      "vision_config": {"deepstack_visual_indexes": [5, 11, 17], "depth": 24, "hidden_size": 1024,
      "intermediate_size": 4096, "out_hidden_size": 2048}})");
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->ropes[0].axes[59], 2);
  EXPECT_EQ(made->ropes[0].axes[60], 0);
  EXPECT_EQ(made->media.tower->inputs.image->grid.side, 48);
  EXPECT_EQ(count_parameters(*made).total + count_parameters(*made->media.tower).total, 2'127'532'032);
}

// glm-4-9b-chat
TEST(PublishedConfigs, ChatGlmHasAsManyParametersAsTheModel) {
  const auto made =
      spec_of(R"({"architectures": ["ChatGLMModel"], "add_qkv_bias": true, "ffn_hidden_size": 13696,
      "hidden_size": 4096, "kv_channels": 128, "multi_query_attention": true, "multi_query_group_num": 2,
      "num_attention_heads": 32, "num_layers": 40, "padded_vocab_size": 151552, "rope_ratio": 500,
      "seq_length": 131072})");
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->ropes[0].theta, 5e6);
  EXPECT_EQ(count_parameters(*made).total, 9'399'951'360);
}

TEST(PublishedConfigs, WhispersHaveAsManyParametersAsTheModels) {
  const auto parameters = [](int dim, int encoder_layers, int vocab, int mels) {
    const auto made = spec_of(fmt::format(
        R"({{"architectures": ["WhisperForConditionalGeneration"], "d_model": {0}, "encoder_layers": {1}, "decoder_layers": 4,
             "encoder_attention_heads": {2}, "decoder_attention_heads": {2}, "encoder_ffn_dim": {3}, "decoder_ffn_dim": {3},
             "vocab_size": {4}, "num_mel_bins": {5}}})",
        dim, encoder_layers, dim / 64, 4 * dim, vocab, mels));
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return count_parameters(*made).total + count_parameters(*made->media.tower).total;
  };
  EXPECT_EQ(parameters(384, 4, 51865, 80), 37'760'640);      // whisper-tiny
  EXPECT_EQ(parameters(1280, 32, 51866, 128), 808'878'080);  // whisper-large-v3-turbo
}

TEST(PublishedConfigs, LatentAttentionKeepsOneLatentOfAToken) {
  const Backend backend = make_reference_backend();
  const auto bytes = [&](std::string_view model) {
    return cache_layout(spec(model), {}).bytes_per_token(backend.ops);
  };
  EXPECT_EQ(bytes("deepseek-ai/DeepSeek-V2-Lite"), 27 * 576 * 2);
  EXPECT_EQ(bytes("deepseek-ai/DeepSeek-V3"), 61 * 576 * 2);
  // yarn multiplies attention scores by (0.1 * mscale_all_dim * ln(factor) + 1)^2.
  const auto scale = [&](std::string_view model) {
    return std::get<LatentAttention>(spec(model).layers[0].mixer).scale;
  };
  EXPECT_NEAR(scale("moonshotai/Moonlight-16B-A3B"), 1 / std::sqrt(192.0), 1e-7);
  EXPECT_NEAR(scale("deepseek-ai/DeepSeek-V3"), 1.8738542 / std::sqrt(192.0), 1e-6);
}

TEST(PublishedConfigs, SparseAttentionKeepsAnIndexersKeysBesideLatents) {
  const auto made = [](std::string_view architecture, std::string_view fields) {
    return spec_of(fmt::format(R"({{"architectures": ["{}"]{}}})", architecture, fields)).value();
  };
  const Backend backend = make_reference_backend();
  const ModelSpec own = made("DeepseekV32ForCausalLM", "");
  EXPECT_EQ(cache_layout(own, {}).bytes_per_token(backend.ops), 61 * (576 + 128) * 2);
  EXPECT_FALSE(own.ropes.at(1).interleaved);
  EXPECT_TRUE(made("GlmMoeDsaForCausalLM", "").ropes.at(1).interleaved);
  EXPECT_TRUE(made("DeepseekV32ForCausalLM", R"(, "indexer_rope_interleave": true)").ropes.at(1).interleaved);
}

// A layer without an indexer uses an earlier layer's selection. A number, a pattern or a list says which
// layers have indexers.
TEST(PublishedConfigs, IndexersThatLayersShare) {
  const auto made = [](std::string_view fields) {
    return spec_of(fmt::format(R"({{"architectures": ["GlmMoeDsaForCausalLM"], "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 1, "num_hidden_layers": 7, {}}})", fields));
  };
  const auto own = [&](std::string_view fields) {
    std::vector<int> numbers;
    const ModelSpec spec = made(fields).value();
    for (std::size_t i = 0; i < spec.layers.size(); ++i)
      if (std::get<LatentAttention>(spec.layers[i].mixer).indexer.value().heads > 0) numbers.push_back(static_cast<int>(i));
    return numbers;
  };
  EXPECT_EQ(own(R"("index_topk_freq": 4)"), (std::vector{0, 1, 5}));
  EXPECT_EQ(own(R"("index_topk_freq": 3, "index_skip_topk_offset": 3)"), (std::vector{0, 1, 2, 5}));
  EXPECT_EQ(own(R"("index_topk_pattern": "FSFSSFS")"), (std::vector{0, 2, 5}));
  EXPECT_EQ(own(R"("indexer_types": ["full", "shared", "shared", "shared", "full", "shared", "shared"])"),
            (std::vector{0, 4}));
  EXPECT_EQ(made(R"("index_topk_pattern": "FSFSSFS")")->predictor->like, 5u);
  EXPECT_EQ(made(R"("index_topk_pattern": "FSFSSFS")")->max_positions, 202752);
  EXPECT_EQ(made(R"("index_topk_pattern": "FSF")").error().field, "index_topk_pattern");
  EXPECT_EQ(made(R"("index_topk_pattern": "SFFFFFF")").error().field, "index_topk_pattern");
  EXPECT_EQ(made(R"("index_topk_pattern": "FXFFFFF")").error().field, "index_topk_pattern");
  EXPECT_EQ(made(R"("indexer_types": ["full"])").error().field, "indexer_types");
}

// DeepSeek-V4-Flash: layers with entries of 4 tokens, which have an indexer, alternate with layers with
// entries of 128 tokens. All layers have windows of 128 tokens.
TEST(PublishedConfigs, CompressedAttentionKeepsEntriesOfSeveralTokens) {
  const auto made = [](std::string_view fields) {
    std::string ratios = "0, 0";
    for (int i = 2; i < 43; ++i) ratios += i % 2 == 0 ? ", 4" : ", 128";
    return spec_of(fmt::format(
        R"({{"architectures": ["DeepseekV4ForCausalLM"], "compress_ratios": [{}], "num_hash_layers": 3, "qk_rope_head_dim": 64,
             "rope_scaling": {{"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536}}{}}})",
        ratios, fields));
  };
  const ModelSpec spec = made("").value();
  EXPECT_EQ(spec.ropes[0].scaling.kind, RopeScalingKind::none);
  EXPECT_EQ(spec.ropes[1].theta, 160000);
  EXPECT_EQ(spec.ropes[1].scaling.factor, 16);
  EXPECT_EQ(std::get<Experts>(spec.layers[2].feed_forward).vocab, 129280);
  EXPECT_EQ(std::get<Experts>(spec.layers[3].feed_forward).vocab, 0);
  const Backend backend = make_reference_backend();
  const CacheLayout layout = cache_layout(spec, {});
  EXPECT_EQ(layout.block_size, 128);
  ASSERT_TRUE(check_support(spec, {}, backend).has_value());
  // A block of 128 tokens has 32 entries in each of the 21 layers with indexers. No other group needs a
  // larger block.
  EXPECT_EQ(layout.block_bytes(backend.ops), 21 * 32 * (512 + 128) * 2);
  EXPECT_EQ(layout.bytes_per_token(backend.ops), 2 * 21 * 32 * (512 + 128) * 2 / 128.0);
  EXPECT_EQ(layout.state_floats, 21 * 2 * 3 * (512 + 128) + 20 * 3 * 512);
  const auto error = [&](std::string_view fields) { return made(fields).error().field; };
  EXPECT_EQ(error(R"(, "scoring_func": "softmax")"), "scoring_func");
  EXPECT_EQ(error(R"(, "o_groups": 7)"), "o_groups");
  EXPECT_EQ(error(R"(, "num_hidden_layers": 44)"), "layer_types");
  EXPECT_EQ(error(R"(, "compress_rates": {"compressed_sparse_attention": 8})"), "compress_ratios");
}

TEST(PublishedConfigs, DeepSeekFieldsThatAreNotThereAreNamed) {
  const auto error = [](std::string_view architecture, std::string_view fields) {
    const auto made = spec_of(fmt::format(R"({{"architectures": ["{}"], {}}})", architecture, fields));
    EXPECT_FALSE(made.has_value()) << fields;
    return made ? std::string() : made.error().field;
  };
  constexpr std::string_view kV2 = "DeepseekV2ForCausalLM", kV3 = "DeepseekV3ForCausalLM";
  EXPECT_EQ(error(kV2, R"("topk_method": "noaux_tc")"), "topk_method");
  EXPECT_EQ(error(kV2, R"("scoring_func": "sigmoid")"), "scoring_func");
  EXPECT_EQ(error(kV2, R"("mlp_bias": true)"), "mlp_bias");
  EXPECT_EQ(error(kV3, R"("scoring_func": "softmax")"), "scoring_func");
  EXPECT_EQ(error(kV3, R"("v_head_dim": 100)"), "v_head_dim");
  EXPECT_EQ(error(kV3, R"("kv_lora_rank": 500)"), "kv_lora_rank");
  EXPECT_EQ(error(kV3, R"("kv_lora_rank": null)"), "kv_lora_rank");
  EXPECT_EQ(error(kV3, R"("n_group": 7)"), "n_group");
  EXPECT_EQ(error(kV3, R"("topk_group": 9)"), "topk_group");
  EXPECT_EQ(error(kV3, R"("n_group": 64, "topk_group": 1)"), "topk_group");
  EXPECT_EQ(error("Glm4MoeLiteForCausalLM", R"("mlp_layer_types": ["dense"])"), "mlp_layer_types");
}

TEST(PublishedConfigs, OptionsThatAreNotThereAreNamed) {
  const auto error = [](std::string_view architecture, std::string_view fields) {
    const auto made = spec_of(fmt::format(R"({{"architectures": ["{}"], {}}})", architecture, fields));
    EXPECT_FALSE(made.has_value()) << architecture << " " << fields;
    return made ? std::string() : made.error().field;
  };
  EXPECT_EQ(error("OPTForCausalLM", R"("do_layer_norm_before": false)"), "do_layer_norm_before");
  EXPECT_EQ(error("OPTForCausalLM", R"("word_embed_proj_dim": 512)"), "word_embed_proj_dim");
  EXPECT_EQ(error("BaichuanForCausalLM", R"("vocab_size": 125696)"), "vocab_size");
  EXPECT_EQ(error("ChatGLMModel", R"("rmsnorm": false)"), "rmsnorm");
  EXPECT_EQ(error("BloomForCausalLM", R"("apply_residual_connection_post_layernorm": true)"),
            "apply_residual_connection_post_layernorm");
  EXPECT_EQ(error("MptForCausalLM", R"("no_bias": false)"), "no_bias");
  EXPECT_EQ(error("MptForCausalLM", R"("attn_config": {"alibi": false})"), "alibi");
  EXPECT_EQ(error("OlmoeForCausalLM", R"("clip_qkv": 8)"), "clip_qkv");
  EXPECT_EQ(error("DbrxForCausalLM", R"("ffn_config": {"moe_normalize_expert_weights": 2.0})"), "ffn_config");
  EXPECT_EQ(error("DeciLMForCausalLM", R"("num_hidden_layers": 1)"), "block_configs");
  EXPECT_EQ(error("DeciLMForCausalLM", R"("num_hidden_layers": 1, "block_configs": [{"attention":
                  {"replace_with_linear": true}, "ffn": {"no_op": true}}])"), "replace_with_linear");
  EXPECT_EQ(error("LongcatFlashForCausalLM", R"("zero_expert_type": "copy")"), "zero_expert_type");
  EXPECT_EQ(error("TeleChat2ForCausalLM", R"("embed_layernorm": true)"), "embed_layernorm");
  EXPECT_EQ(error("Ernie4_5_MoeForCausalLM", R"("use_bias": true)"), "use_bias");
  EXPECT_EQ(error("HunYuanMoEV1ForCausalLM", R"("num_experts": [8, 16])"), "num_experts");
  EXPECT_EQ(error("Llama4ForCausalLM", R"("num_experts_per_tok": 2)"), "num_experts_per_tok");
  EXPECT_EQ(error("SmolLM3ForCausalLM", R"("no_rope_layers": [1, 0])"), "no_rope_layers");
  EXPECT_EQ(error("GPTJForCausalLM", R"("rotary_dim": 63)"), "rotary_dim");
  EXPECT_EQ(error("GPTJForCausalLM", R"("rotary_dim": null)"), "rotary_dim");
  EXPECT_EQ(error("PhiMoEForCausalLM",
                  R"("rope_scaling": {"type": "default", "short_mscale": 1.2, "long_mscale": 1.3})"),
            "rope_scaling");
  EXPECT_EQ(error("Gemma3nForCausalLM", R"("intermediate_size": [64, 64])"), "intermediate_size");
  EXPECT_EQ(error("Gemma3nForCausalLM", R"("altup_active_idx": 1)"), "altup_active_idx");
  EXPECT_EQ(error("Gemma3nForCausalLM", R"("altup_num_inputs": 9)"), "altup_num_inputs");
  EXPECT_EQ(error("Gemma3nForCausalLM", R"("activation_sparsity_pattern": [0.95])"),
            "activation_sparsity_pattern");
  EXPECT_EQ(error("Gemma4ForCausalLM", R"("enable_moe_block": true, "num_experts": 4, "top_k_experts": 5)"),
            "top_k_experts");
  EXPECT_EQ(error("Gemma4ForCausalLM", R"("use_bidirectional_attention": "all")"),
            "use_bidirectional_attention");
  EXPECT_EQ(error("ModernBertForSequenceClassification", R"("classifier_pooling": "max")"),
            "classifier_pooling");
  EXPECT_EQ(error("ModernBertModel", R"("layer_types": ["full_attention"])"), "layer_types");
  EXPECT_EQ(error("T5EncoderModel", R"("relative_attention_num_buckets": 6)"), "relative_attention_num_buckets");
  EXPECT_EQ(error("LlamaBidirectionalModel", R"("num_hidden_layers": 1)"), "pooling");
  EXPECT_EQ(error("LlamaBidirectionalForSequenceClassification", R"("pooling": "max")"), "pooling");
  EXPECT_EQ(
      error(
          "Step3p5ForCausalLM",
          R"("layer_types": ["full_attention"], "num_hidden_layers": 1, "sliding_window": 8, "norm_expert_weight": false)"),
      "norm_expert_weight");
  const auto step3p5 = [&](std::string_view fields) {
    return error("Step3p5ForCausalLM", fmt::format(R"("layer_types": ["full_attention"], "num_hidden_layers": 1, "sliding_window": 8, {})", fields));
  };
  EXPECT_EQ(step3p5(R"("moe_router_activation": "softmax")"), "moe_router_activation");
  EXPECT_EQ(step3p5(R"("use_moe_router_bias": false)"), "use_moe_router_bias");
  EXPECT_EQ(step3p5(R"("use_rope_layers": [false])"), "use_rope_layers");
  EXPECT_EQ(step3p5(R"("rope_scaling": {"type": "linear", "factor": 2})"), "yarn_only_types");
  EXPECT_EQ(error("IQuestCoderForCausalLM", R"("use_sliding_window": true)"), "use_sliding_window");
  EXPECT_EQ(error("MiniMaxM2ForCausalLM", R"("scoring_func": "softmax")"), "scoring_func");
  EXPECT_EQ(error("NemotronHForCausalLM", R"("mamba_hidden_act": "gelu")"), "mamba_hidden_act");
  EXPECT_EQ(error("Qwen3_5ForCausalLM", R"("attn_output_gate": false)"), "attn_output_gate");
  EXPECT_EQ(error("ExaoneMoeForCausalLM", R"("sliding_windows": [128])"), "sliding_windows");
  EXPECT_EQ(error("ExaoneMoeForCausalLM", R"("swiglu_limits": [7])"), "swiglu_limits");
  EXPECT_EQ(error("NomicBertModel", R"("prenorm": true)"), "prenorm");
  EXPECT_EQ(error("NomicBertModel", R"("moe_every_n_layers": 2)"), "activation_function");
  EXPECT_EQ(error("NomicBertModel",
                  R"("n_embd": 64, "n_layer": 2, "n_head": 4, "n_inner": 64, "n_positions": 64,)"
                  R"("layer_norm_epsilon": 1e-5, "rotary_emb_base": 1000, "activation_function": "glu")"),
            "activation_function");
  EXPECT_EQ(error("VoxtralForConditionalGeneration", R"("audio_config": {"intermediate_size": 5000})"),
            "audio_config");
  EXPECT_EQ(error("GemmaForCausalLM", R"("use_bidirectional_attention": true)"),
            "use_bidirectional_attention");
  EXPECT_EQ(error("Mistral3ForConditionalGeneration", R"("vision_config": {"model_type": "siglip"})"),
            "model_type");
  EXPECT_EQ(error("KimiLinearForCausalLM", R"("mla_use_nope": false)"), "mla_use_nope");
  EXPECT_EQ(error("KimiLinearForCausalLM", R"("moe_router_activation_func": "softmax")"), "scoring_func");
  EXPECT_EQ(error("KimiLinearForCausalLM", R"("layer_types": ["sliding_attention"], "num_hidden_layers": 1)"),
            "layer_types");
  EXPECT_EQ(error("MiniMaxText01ForCausalLM", R"("postnorm": false)"), "postnorm");
  EXPECT_EQ(error("MiniMaxText01ForCausalLM", R"("shared_intermediate_size": 64)"),
            "shared_intermediate_size");
  EXPECT_EQ(error("MiniMaxText01ForCausalLM", R"("attn_type_list": [1])"), "attn_type_list");
  EXPECT_EQ(error("MiniMaxText01ForCausalLM", R"("head_dim": 512)"), "head_dim");
  EXPECT_EQ(error("LlamaForCausalLM", R"("hidden_act": "laplace")"), "hidden_act");
}

TEST(PublishedConfigs, NewerFieldsAreRead) {
  const auto without_rope = [](const ModelSpec& spec) {
    return std::ranges::count_if(spec.layers,
                                 [](const LayerSpec& layer) { return layer.attention().rope < 0; });
  };
  EXPECT_EQ(without_rope(spec("HuggingFaceTB/SmolLM3-3B")), 9);
  const ModelSpec cohere2 = spec("CohereForAI/c4ai-command-r7b-12-2024");
  EXPECT_EQ(without_rope(cohere2), 8);
  EXPECT_EQ(layers_with_window(cohere2), 24);
  EXPECT_EQ(without_rope(spec("LGAI-EXAONE/EXAONE-4.0-32B")), 16);
  EXPECT_EQ(without_rope(spec("LGAI-EXAONE/EXAONE-4.0-1.2B")), 0);
  const ModelSpec olmo3 = spec("allenai/Olmo-3-1025-7B");
  EXPECT_EQ(layers_with_window(olmo3), 24);
  EXPECT_EQ(olmo3.ropes[0].scaling.kind, RopeScalingKind::yarn);
  EXPECT_EQ(olmo3.ropes[1].scaling.kind, RopeScalingKind::none);
  const ModelSpec hunyuan = spec("tencent/Hunyuan-A13B-Instruct");
  EXPECT_NEAR(hunyuan.ropes[0].theta, 11158839.9, 1);  // value in the model card
  EXPECT_EQ(hunyuan.max_positions, 32768);
  const ModelSpec scout = spec("meta-llama/Llama-4-Scout-17B-16E-Instruct (text)");
  EXPECT_EQ(without_rope(scout), 12);
  EXPECT_EQ(scout.layers[0].attention().mask.chunk, 8192);
  EXPECT_TRUE(scout.layers[3].attention().scores.temperature);
  const ModelSpec falcon = spec("tiiuae/falcon-7b");
  EXPECT_EQ(falcon.layers[0].attention().kv_heads, 1);
  EXPECT_EQ(spec("tiiuae/falcon-rw-1b").layers[0].attention().scores.slopes.size(), 32u);
  // opt-125m has 125,239,296 parameters. Two rows of positions are for padding and are not loaded.
  const auto opt = spec_of(R"({"architectures": ["OPTForCausalLM"]})").value();
  EXPECT_EQ(opt.embedding.learned_positions, 2050);
  EXPECT_EQ(count_parameters(opt).total, 125'239'296 - 2 * 768);
  const auto ministral3 = spec_of(R"({"architectures": ["Ministral3ForCausalLM"]})").value();
  EXPECT_EQ(ministral3.temperature.length, 16384);
  EXPECT_EQ(ministral3.max_positions, 262144);
  EXPECT_EQ(spec_of(R"({"architectures": ["ApertusForCausalLM"]})").value().ropes[0].scaling.kind,
            RopeScalingKind::llama3);
}

// Like transformers' AutoModel and vLLM, a Mistral config.json with layer_types is Ministral.
TEST(PublishedConfigs, WindowsAreThoseOfLayerTypes) {
  constexpr std::string_view kTypes = R"("num_hidden_layers": 3, "sliding_window": 8,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention"])";
  for (const char* name : {"MistralForCausalLM", "MinistralForCausalLM", "Ministral3ForCausalLM"}) {
    const auto mixed = spec_of(fmt::format(R"({{"architectures": ["{}"], {}}})", name, kTypes)).value();
    EXPECT_EQ(mixed.layers[0].attention().mask.window, 8) << name;
    EXPECT_EQ(mixed.layers[1].attention().mask.window, 0) << name;
    EXPECT_EQ(mixed.layers[2].attention().mask.window, 8) << name;
  }
  const auto all = spec_of(R"({"architectures": ["MistralForCausalLM"], "num_hidden_layers": 3, "sliding_window": 8})");
  EXPECT_EQ(layers_with_window(all.value()), 3);
  const auto none = spec_of(
      R"({"architectures": ["MistralForCausalLM"], "num_hidden_layers": 1, "sliding_window": null, "layer_types": ["full_attention"]})");
  EXPECT_EQ(layers_with_window(none.value()), 0);
  // transformers uses the window in every layer of these architectures; vLLM does not.
  for (const char* name : {"MixtralForCausalLM", "Phi3ForCausalLM", "Starcoder2ForCausalLM"}) {
    const auto refused = spec_of(fmt::format(R"({{"architectures": ["{}"], {}}})", name, kTypes));
    ASSERT_FALSE(refused.has_value()) << name;
    EXPECT_EQ(refused.error().field, "layer_types");
  }
}

TEST(PublishedConfigs, NetworksWithStatesAndSharedCachesAreRead) {
  const ModelSpec kimi = spec("moonshotai/Kimi-Linear-48B-A3B-Instruct");
  const auto has = [](const ModelSpec& spec, auto kind, std::size_t layer) {
    return std::holds_alternative<decltype(kind)>(spec.layers[layer].mixer);
  };
  EXPECT_TRUE(has(kimi, KimiDelta{}, 0) && has(kimi, LatentAttention{}, 3) &&
              has(kimi, LatentAttention{}, 26));
  const ModelSpec minimax = spec("MiniMaxAI/MiniMax-Text-01");
  EXPECT_TRUE(has(minimax, LightningAttention{}, 6) && has(minimax, Attention{}, 7));
  EXPECT_EQ(minimax.ropes[0].rotary_dim, 64);
  // In vLLM and transformers, the first head of the first layer decays by 2^(-8/64).
  EXPECT_NEAR(std::get<LightningAttention>(minimax.layers[0].mixer).rates[0], 0.917004 * (1 + 1e-5), 1e-6);
  const ModelSpec gemma = spec("google/gemma-3n-E4B-it (text)");
  EXPECT_NEAR(std::get<Mlp>(gemma.layers[9].feed_forward).tail.value(), 1.6448536,
              1e-6);  // 95% of a normal distribution is below it
  EXPECT_EQ(gemma.layers[34].attention().source, 19);
  EXPECT_EQ(gemma.layers[33].attention().source, 18);
  EXPECT_EQ(gemma.inputs.by_layer->vocab, 262144);
}

// Options that only some config.json files of a family have.
TEST(PublishedConfigs, OptionsThatFewFilesHave) {
  const auto made = [](std::string_view architecture, std::string_view fields) {
    auto spec = spec_of(fmt::format(R"({{"architectures": ["{}"], {}}})", architecture, fields));
    EXPECT_TRUE(spec) << spec.error().message;
    return spec.value();
  };
  const ModelSpec exaone = made("ExaoneMoeForCausalLM", R"("num_hidden_layers": 4, "sliding_window": 128,
      "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
      "sliding_windows": [128, 512, 64, 0], "swiglu_limits": [0, 7, 10, 7])");
  EXPECT_EQ(exaone.layers[1].attention().mask.window, 512);
  EXPECT_EQ(exaone.layers[3].attention().mask.window, 0);
  EXPECT_EQ(std::get<Mlp>(exaone.layers[0].feed_forward).limit, 0);
  EXPECT_EQ(std::get<Experts>(exaone.layers[2].feed_forward).expert.limit, 10);
  EXPECT_EQ(std::get<Experts>(exaone.layers[2].feed_forward).shared->limit, 10);
  EXPECT_FALSE(std::get<Experts>(made("MiniMaxM2ForCausalLM", R"("use_routing_bias": false)").layers[0].feed_forward).choice_bias);
  EXPECT_FALSE(made("ChatGLMModel", R"("original_rope": false)").ropes[0].interleaved);
  EXPECT_EQ(made("NemotronHForCausalLM", R"("hybrid_override_pattern": "M*", "sliding_window": 64)")
                .layers[1]
                .attention()
                .mask.window,
            64);
  EXPECT_EQ(made("JambaForCausalLM", R"("num_experts": 1, "num_experts_per_tok": 2)").layers[1].mlp().hidden, 14336);
  EXPECT_EQ(made("IQuestCoderForCausalLM", R"("clip_qkv": 8)").layers[0].attention().clip, 8);
  // The 7B model has RoPE.
  const ModelSpec small = made("BaichuanForCausalLM", R"("hidden_size": 4096, "vocab_size": 64000)");
  EXPECT_TRUE(small.layers[0].attention().scores.slopes.empty());
  EXPECT_FALSE(
      made(
          "BaichuanForCausalLM",
          R"("hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 40, "vocab_size": 64000)")
          .layers[0]
          .attention()
          .scores.slopes.empty());
}

// vLLM runs these architectures as Llama.
TEST(PublishedConfigs, AliasesDescribeLlama) {
  for (const char* alias :
       {"LLaMAForCausalLM", "AquilaForCausalLM", "AquilaModel", "XverseForCausalLM", "YiForCausalLM"}) {
    const auto same = std::ranges::find(families(), alias, &Family::architecture);
    ASSERT_NE(same, families().end()) << alias;
    EXPECT_EQ(same->describe, &describe_llama) << alias;
    EXPECT_EQ(field_defaults(alias), field_defaults("LlamaForCausalLM"));
  }
}

// The defaults of some families describe no model, because their config.json needs lists or a pooling method.
TEST(PublishedConfigs, EveryFamilyDescribesTransformersDefaultModel) {
  // clang-format off
  const std::set<std::string_view> say_more = {"ColPaliForRetrieval", "DbrxForCausalLM", "Qwen2_5OmniModel", "DeciLMForCausalLM", "InternVLChatModel", "Step3p5ForCausalLM",
      "SkyworkR1VChatModel", "Ovis2_5", "Ovis2_6ForCausalLM", "Ovis2_6_MoeForCausalLM", "LlamaBidirectionalModel", "Glm4vForConditionalGeneration", "Glm46VForConditionalGeneration",
      "Step3p7ForConditionalGeneration", "Glm4vMoeForConditionalGeneration", "Qwen2_5OmniForConditionalGeneration",
      "Qwen3OmniMoeForConditionalGeneration", "LlamaBidirectionalForSequenceClassification", "Alpamayo2Super", "H2OVLChatModel",
      "Eagle2_5_VLForConditionalGeneration", "Llama_Nemotron_Nano_VL", "NVLM_D", "NVLM_D_Model", "PixtralForConditionalGeneration"};
  // clang-format on
  for (const Family& family : families()) {
    if (say_more.contains(family.architecture) || family.architecture.starts_with("NemotronH_")) continue;
    const auto made = spec_of(fmt::format(R"({{"architectures": ["{}"]}})", family.architecture));
    EXPECT_TRUE(made.has_value()) << family.architecture << ": " << made.error().message;
  }
}

}  // namespace
}  // namespace octavo
