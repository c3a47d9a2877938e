#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <array>
#include <boost/json/parse.hpp>

#include "model/families/families.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr std::string_view kLlama =
    R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,"vocab_size":100,
  "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,
  "max_position_embeddings":128,"rms_norm_eps":1e-5,"rope_theta":10000.0,"rope_scaling":null})";

Result<ModelSpec> spec_of(std::string_view text) {
  TRY(const Config config, Config::parse(text));
  return describe(config);
}

// Returns kLlama with `field` replaced or added.
std::string with(std::string_view field, std::string_view value) {
  std::string text(kLlama);
  const std::string key = fmt::format("\"{}\":", field);
  if (const std::size_t at = text.find(key); at != std::string::npos) {
    std::size_t end = at + key.size();
    int depth = 0;
    while (depth > 0 || (text[end] != ',' && text[end] != '}')) {
      depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
      ++end;
    }
    return text.replace(at, end - at, key + std::string(value));
  }
  return text.insert(1, key + std::string(value) + ",");
}

TEST(Config, Llama) {
  const auto spec = spec_of(kLlama);
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->layers.size(), 2u);
  EXPECT_EQ(spec->layers[0].attention().head_dim, 16);
  EXPECT_FLOAT_EQ(spec->layers[0].attention().scores.scale, 0.25F);
  EXPECT_EQ(spec->max_positions, 128);
  EXPECT_FALSE(spec->logits.tied);
}

TEST(Config, TextConfigIsLookedUpFirst) {
  const auto spec =
      spec_of(fmt::format(R"({{"architectures":["LlamaForCausalLM"],"vocab_size":7,"text_config":{}}})",
                          with("architectures", "null")));
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->vocab, 100);
}

// The files of LLaVA, SmolVLM and Kimi K2.5 have this form.
TEST(Config, TheArchitectureIsThatOfTheWholeFile) {
  const std::string text = with("architectures", R"(["VLlama3ForCausalLM"])");
  const auto spec = spec_of(fmt::format(R"({{"architectures":["MistralForCausalLM"],"text_config":{}}})", text));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->architecture, "MistralForCausalLM");
  const auto alone = spec_of(fmt::format(R"({{"text_config":{}}})", kLlama));
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->architecture, "LlamaForCausalLM");
}

struct Bad {
  const char* field;
  const char* value;
  const char* message;
};

class ConfigBad : public testing::TestWithParam<Bad> {};

TEST_P(ConfigBad, NamesFieldAndLimit) {
  const Bad& bad = GetParam();
  const auto spec = spec_of(with(bad.field, bad.value));
  ASSERT_FALSE(spec.has_value());
  EXPECT_THAT(spec.error().message, HasSubstr(bad.message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ConfigBad,
    testing::Values(
        Bad{"architectures", "null", "architectures is missing"},
        Bad{"architectures", "[]", "architectures is missing"},
        Bad{"architectures", "\"LlamaForCausalLM\"", "must be a list"},
        Bad{"architectures", "[1]", "must be a list of strings"},
        Bad{"architectures", R"(["RwkvForCausalLM"])",
            "supported architectures, the most similar names are RWKV7ForCausalLM, RWForCausalLM, "},
        Bad{"hidden_size", "0", "hidden_size is 0, but must be in [1, 1048576]"},
        Bad{"hidden_size", "-1", "hidden_size is -1"}, Bad{"hidden_size", "null", "hidden_size is missing"},
        Bad{"hidden_size", "64.5", "hidden_size must be a whole number"},
        Bad{"hidden_size", "\"64\"", "hidden_size must be a whole number"},
        Bad{"hidden_size", "[]", "hidden_size must be a whole number"},
        Bad{"hidden_size", "2147483648", "but must be in [1, 1048576]"},
        Bad{"hidden_size", "9007199254740993", "but must be in"}, Bad{"hidden_size", "1e309", ""},
        Bad{"hidden_size", "66", "num_attention_heads 4 must divide hidden_size 66"},
        Bad{"vocab_size", "0", "vocab_size is 0"},
        Bad{"vocab_size", "8388609", "but must be in [1, 8388608]"},
        Bad{"num_hidden_layers", "0", "num_hidden_layers is 0"},
        Bad{"num_hidden_layers", "1025", "num_hidden_layers is 1025, but must be in [1, 1024]"},
        Bad{"num_attention_heads", "0", "num_attention_heads is 0"},
        Bad{"num_key_value_heads", "3", "num_attention_heads 4 must be a multiple of num_key_value_heads 3"},
        Bad{"num_key_value_heads", "8", "must be a multiple"}, Bad{"head_dim", "0", "head_dim is 0"},
        Bad{"head_dim", "4097", "head_dim is 4097, but must be in [2, 4096]"},
        Bad{"intermediate_size", "0", "intermediate_size is 0"},
        Bad{"max_position_embeddings", "0", "max_position_embeddings is 0"},
        Bad{"max_position_embeddings", "1e18", "max_position_embeddings is"},
        Bad{"rms_norm_eps", "-1", "rms_norm_eps is -1"},
        Bad{"rms_norm_eps", "true", "rms_norm_eps must be a number"},
        Bad{"rope_theta", "0", "rope_theta is 0"}, Bad{"rope_theta", "-1e4", "rope_theta is -10000"},
        Bad{"rope_theta", "1e300", "rope_theta is"}, Bad{"rope_theta", "NaN", "not valid JSON"},
        Bad{"tie_word_embeddings", "1", "tie_word_embeddings must be true or false"},
        Bad{"hidden_act", "\"mish\"", "hidden_act is \"mish\", which is not supported: must be silu"},
        Bad{"hidden_act", "\"xielu\"", "hidden_act is \"xielu\", which is not supported: must be silu"},
        Bad{"rope_scaling", "3", "rope_scaling must be an object"},
        Bad{"rope_scaling", R"({"type":"magic"})", "rope_type is \"magic\", which is not supported: must be"},
        Bad{"rope_scaling", R"({"type":"linear"})", "rope_scaling.factor is missing"},
        Bad{"rope_scaling", R"({"type":"yarn","original_max_position_embeddings":32})",
            "rope_scaling.factor is missing"},
        Bad{"rope_scaling", R"({"type":"linear","factor":0})", "rope_scaling.factor is 0"},
        Bad{"rope_scaling", R"({"type":"dynamic","factor":"2"})", "rope_scaling.factor must be a number"},
        Bad{"rope_scaling", R"({"rope_type":"llama3","factor":8,"low_freq_factor":5,"high_freq_factor":4})",
            "low_freq_factor 5 must be at most"},
        Bad{"rope_scaling",
            R"({"type":"yarn","factor":2,"rope_theta":1,"original_max_position_embeddings":4096})",
            "give frequencies that are not in"},
        Bad{"rope_scaling", R"({"type":"longrope","short_factor":[1,2],"long_factor":[1,2]})",
            "rope_scaling.short_factor must be a list of 8 numbers"}));

TEST(Config, PartOfAHeadThatTurns) {
  const auto glm = [](std::string_view share) {
    return spec_of(
        fmt::format(R"({{"architectures": ["GlmForCausalLM"], "partial_rotary_factor": {}}})", share));
  };
  EXPECT_THAT(glm("2").error().message, HasSubstr("partial_rotary_factor is 2"));
  EXPECT_THAT(glm("0").error().message, HasSubstr("the number must be even"));
  EXPECT_EQ(glm("0.25")->ropes[0].rotary_dim, 32);
  EXPECT_EQ(spec_of(with("partial_rotary_factor", "0.5"))->ropes[0].rotary_dim, 16)
      << "Llama knows no such field";
}

TEST(Config, Hybrids) {
  const auto qwen = [](std::string_view fields) {
    return spec_of(fmt::format(R"({{"architectures": ["Qwen3NextForCausalLM"]{}}})", fields));
  };
  const auto spec = qwen("");
  ASSERT_TRUE(spec) << spec.error().message;
  for (std::size_t i = 0; i < spec->layers.size(); ++i)
    EXPECT_EQ(std::holds_alternative<DeltaNet>(spec->layers[i].mixer), i % 4 != 3);
  EXPECT_TRUE(std::holds_alternative<Attention>(qwen(R"(, "full_attention_interval": 2)")->layers[1].mixer));
  const auto error = [&](std::string_view fields) {
    const auto made = qwen(fields);
    return made ? "" : made.error().message;
  };
  EXPECT_THAT(error(R"(, "full_attention_interval": 1000)"),
              HasSubstr("at least one layer must have full_attention"));
  EXPECT_THAT(error(R"(, "num_hidden_layers": 1, "layer_types": ["mamba"])"), HasSubstr("has \"mamba\""));
  EXPECT_THAT(error(R"(, "layer_types": ["full_attention"])"),
              HasSubstr("1 entries, but the model has 48 layers"));
  EXPECT_THAT(error(R"(, "linear_num_value_heads": 24)"),
              HasSubstr("must be a multiple of linear_num_key_heads 16"));
  EXPECT_THAT(error(R"(, "linear_key_head_dim": 512)"), HasSubstr("linear_key_head_dim is 512"));
  EXPECT_THAT(error(R"(, "linear_conv_kernel_dim": 1)"), HasSubstr("linear_conv_kernel_dim is 1"));
  EXPECT_THAT(error(R"(, "hidden_act": "gelu")"), HasSubstr("must be silu"));
}

TEST(Config, LayersOfOtherKinds) {
  const auto spec = [](std::string_view architecture, std::string_view fields) {
    return spec_of(fmt::format(R"({{"architectures": ["{}ForCausalLM"]{}}})", architecture, fields));
  };
  const auto error = [&](std::string_view architecture, std::string_view fields) {
    const auto made = spec(architecture, fields);
    return made ? "" : made.error().message;
  };
  const auto lfm = spec("Lfm2", R"(, "num_hidden_layers": 2, "full_attn_idxs": [1])");
  ASSERT_TRUE(lfm) << lfm.error().message;
  EXPECT_EQ(std::get<ShortConv>(lfm->layers[0].mixer).width, 3);
  EXPECT_TRUE(std::holds_alternative<Attention>(lfm->layers[1].mixer));
  EXPECT_THAT(error("Lfm2", R"(, "num_hidden_layers": 1, "layer_types": ["mamba"])"),
              HasSubstr("linear_attention"));
  EXPECT_THAT(error("Lfm2", R"(, "layer_types": ["conv"])"),
              HasSubstr("1 entries, but the model has 32 layers"));
  EXPECT_THAT(error("Lfm2", R"(, "conv_L_cache": 9)"), HasSubstr("conv_L_cache is 9"));

  const auto nemotron = spec("NemotronH", R"(, "hybrid_override_pattern": "M-*E")");
  ASSERT_TRUE(nemotron) << nemotron.error().message;
  ASSERT_EQ(nemotron->layers.size(), 4u);
  EXPECT_TRUE(std::holds_alternative<Mamba2>(nemotron->layers[0].mixer));
  EXPECT_EQ(std::get<Mlp>(nemotron->layers[1].feed_forward).activation, Activation::relu_squared);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(nemotron->layers[3].mixer));
  EXPECT_THAT(error("NemotronH", R"(, "hybrid_override_pattern": "MX")"), HasSubstr("has 'X'"));
  EXPECT_THAT(error("NemotronH", R"(, "hybrid_override_pattern": "E", "moe_latent_size": 64, "mlp_bias": true)"),
              HasSubstr("mlp_bias is true"));
  EXPECT_THAT(error("NemotronH", R"(, "hybrid_override_pattern": "")"),
              HasSubstr("the pattern has 0 layers"));
  EXPECT_THAT(error("NemotronH", fmt::format(R"(, "hybrid_override_pattern": "{}")", std::string(1025, '-'))),
              HasSubstr("the pattern has 1025 layers, but must have 1 to 1024"));
  for (const char* none :
       {R"("n_routed_experts": null)", R"("first_k_dense_replace": 1)", R"("mlp_layer_types": ["dense"])"})
    EXPECT_THAT(error("NemotronH", fmt::format(R"(, "hybrid_override_pattern": "E", {})", none)),
                HasSubstr("n_routed_experts"))
        << none;

  const auto minimax = [&](std::string_view fields) {
    return error("MiniMaxM2", fmt::format(R"(, "num_hidden_layers": 1, "head_dim": 8, {})", fields));
  };
  constexpr std::string_view kLongrope =
      R"("partial_rotary_factor": 1.0, "rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1, 1],
                                                        "long_factor": [1, 1, 1, 1]})";
  EXPECT_EQ(minimax(R"("rotary_dim": 6)"), "");
  EXPECT_EQ(minimax(fmt::format(R"("rotary_dim": 8, {})", kLongrope)), "");
  EXPECT_THAT(minimax(fmt::format(R"("rotary_dim": 6, {})", kLongrope)),
              HasSubstr("rotary_dim is 6, but the factors of longrope need 8"));
  EXPECT_THAT(minimax(R"("rotary_dim": 7)"), HasSubstr("rotary_dim is 7, but must be even"));

  EXPECT_THAT(error("Bamba", R"(, "mamba_n_groups": 3)"), HasSubstr("mamba_n_groups 3 must divide"));
  EXPECT_THAT(error("Bamba", R"(, "mamba_d_state": 512)"), HasSubstr("mamba_d_state is 512"));
  EXPECT_THAT(error("Bamba", R"(, "mamba_d_head": 63)"),
              HasSubstr("128 heads of 63 elements must have 8192 elements together"));
  EXPECT_THAT(error("Mamba", R"(, "hidden_act": "gelu")"), HasSubstr("must be silu"));
}

TEST(Config, InfinityAsPythonWritesIt) {
  const auto most = [](std::string_view limits) {
    const auto spec = spec_of(fmt::format(
        R"({{"architectures": ["Mamba2ForCausalLM"], "note": "\"Infinity", "time_step_limit": {}}})",
        limits));
    EXPECT_TRUE(spec) << spec.error().message;
    return spec ? std::get<Mamba2>(spec->layers[0].mixer).most_step : 0;
  };
  EXPECT_EQ(most("[0.0, Infinity]"), std::numeric_limits<float>::infinity());
  EXPECT_EQ(most(R"([0.0, {"__float__": "Infinity"}])"), std::numeric_limits<float>::infinity());
  EXPECT_EQ(most("[0.0, 0.5]"), 0.5F);
  EXPECT_EQ(Config::parse(R"({"x": "Infinity"})")->text("x").value(), "Infinity");
}

TEST(Config, NotJson) {
  for (const char* text : {"", "{", "[]", "null", "{\"a\":1,\"a\":2}"}) {
    EXPECT_FALSE(Config::parse(text).has_value()) << text;
  }
}

TEST(Families, NoArchitectureHasTwoRows) {
  EXPECT_EQ(std::ranges::adjacent_find(families(), {}, &Family::architecture), families().end());
  EXPECT_GT(families().size(), 200u);
}

TEST(Families, EveryTruncationOfEveryFieldIsAnErrorNotACrash) {
  for (const Family& family : families()) {
    const std::string text = with("architectures", fmt::format("[\"{}\"]", family.architecture));
    const auto spec = spec_of(text);
    EXPECT_TRUE(!spec || spec->architecture == family.architecture);
    for (std::size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(spec_of(text.substr(0, n)).has_value());
  }
}

TEST(Config, OverridesStandAboveTheText) {
  const auto overrides =
      boost::json::parse(R"({"a": 2, "rope": {"theta": 5}, "list": [1], "new": "x"})").as_object();
  const Config config =
      Config::parse(R"({"a": 1, "rope": {"theta": 1, "kind": "k"}, "list": [3, 4]})", overrides).value();
  EXPECT_EQ(config.integer("a", {0, 9}).value(), 2);
  const Config rope = *config.object("rope").value();
  EXPECT_EQ(rope.integer("theta", {0, 9}).value(), 5);
  EXPECT_EQ(rope.text("kind").value(), "k");
  EXPECT_EQ(config.integers("list", {0, 9}).value(), std::vector<int>{1});
  EXPECT_EQ(config.text("new").value(), "x");
}

// An override of the scaling must not reset rope_theta to its default.
TEST(Config, AnOverrideOfRopeScalingKeepsTheBaseOfRopeParameters) {
  const auto overrides = boost::json::parse(R"({"rope_scaling": {"rope_type": "linear", "factor": 2}})").as_object();
  const Config config =
      Config::parse(with("rope_parameters", R"({"rope_type": "default", "rope_theta": 5e5})"), overrides).value();
  const auto spec = describe(config);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->ropes[0].theta, 5e5);
  EXPECT_EQ(spec->ropes[0].scaling.kind, RopeScalingKind::linear);
}

TEST(Config, Pairs) {
  using Pairs = std::vector<std::array<int, 2>>;
  const Config config =
      Config::parse(R"({"a": [[1, 2], [3, 4]], "b": [[1]], "c": [1, 2], "d": [[1, 99]]})").value();
  EXPECT_EQ(config.pairs("a", {1, 9}).value(), (Pairs{{1, 2}, {3, 4}}));
  EXPECT_EQ(config.pairs("absent", {1, 9}).value(), Pairs());
  for (const char* field : {"b", "c", "d"}) EXPECT_EQ(config.pairs(field, {1, 9}).error().field, field);
}

}  // namespace
}  // namespace octavo
