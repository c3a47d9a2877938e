// Networks with only Mamba layers: Mamba (Gu and Dao, 2023), Falcon Mamba (TII, 2024), Mamba2 (Dao and Gu,
// 2024). Also Jamba (AI21, 2024): Mamba, with attention in some layers and experts in every second layer.
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

struct MambaFields {
  std::string_view expand = "expand";
  std::string_view state_dim = "state_size";
  std::string_view step_rank = "time_step_rank";
  std::string_view conv_width = "conv_kernel";
  std::string_view conv_bias = "use_conv_bias";
  std::string_view bias = "use_bias";
};

Result<Mamba> read_mamba(const Config& config, const MambaFields& fields, int dim) {
  Mamba m;
  TRY(const double expand, config.number(fields.expand, {1.0 / 64, 64}));
  m.inner = static_cast<int>(expand * dim);
  TRY(m.state_dim, config.integer(fields.state_dim, {1, kMaxStateDim}));
  TRY(m.conv_width, config.integer(fields.conv_width, {2, kMaxConvWidth}));
  TRY(m.conv_bias, config.boolean(fields.conv_bias));
  TRY(m.bias, config.boolean(fields.bias));
  m.step_rank = (dim + 15) / 16;  // default ("auto")
  if (!config.text(fields.step_rank)) {
    TRY(m.step_rank, config.integer(fields.step_rank, kDim));
  }
  return m;
}

}  // namespace

static Result<ModelSpec> describe_mamba(const Config& config) {
  return describe_attention_free(
      config, [&](int dim, const NormSpec&) -> Result<Mixer> { return read_mamba(config, {}, dim); });
}

// Falcon Mamba's norms of dt, b and c have no weights.
static Result<ModelSpec> describe_falcon_mamba(const Config& config) {
  return describe_attention_free(config, [&](int dim, const NormSpec& norm) -> Result<Mixer> {
    TRY(Mamba mamba, read_mamba(config, {}, dim));
    TRY(const double eps, config.number("mixer_rms_eps", {0, 1}));
    mamba.norm = norm;
    mamba.norm.eps = static_cast<float>(eps);
    mamba.norm.stored = false;
    return mamba;
  });
}

static Result<ModelSpec> describe_mamba2(const Config& config) {
  return describe_attention_free(config, [&](int dim, const NormSpec& norm) -> Result<Mixer> {
    TRY(const double expand, config.number("expand", {1.0 / 64, 64}));
    return read_mamba2(config,
                       {.heads = "num_heads",
                        .head_dim = "head_dim",
                        .groups = "n_groups",
                        .state_dim = "state_size",
                        .conv_width = "conv_kernel",
                        .conv_bias = "use_conv_bias",
                        .bias = "use_bias"},
                       static_cast<std::int64_t>(expand * dim), norm);
  });
}

static Result<ModelSpec> describe_jamba(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.rotary = false}));
  TRY(Mamba mamba, read_mamba(config,
                              {.expand = "mamba_expand",
                               .state_dim = "mamba_d_state",
                               .step_rank = "mamba_dt_rank",
                               .conv_width = "mamba_d_conv",
                               .conv_bias = "mamba_conv_bias",
                               .bias = "mamba_proj_bias"},
                              spec.dim));
  mamba.norm = spec.final_norm;
  TRY(const int count, config.integer(config.has("num_local_experts") ? "num_local_experts" : "num_experts",
                                      {1, kMaxExperts}));
  Experts experts;
  if (count > 1) {
    TRY(experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  }
  TRY(const int attention_period, config.integer("attn_layer_period", {1, 1024}));
  TRY(const int attention_offset, config.integer("attn_layer_offset", {0, attention_period - 1}));
  TRY(const int expert_period, config.integer("expert_layer_period", {1, 1024}));
  TRY(const int expert_offset, config.integer("expert_layer_offset", {0, expert_period - 1}));
  for (int i = 0; i < std::ssize(spec.layers); ++i) {
    LayerSpec& layer = spec.layers[static_cast<std::size_t>(i)];
    if (i % attention_period != attention_offset) layer.mixer = mamba;
    if (count > 1 && i % expert_period == expert_offset) layer.feed_forward = experts;
  }
  Names& names = spec.names;
  names.final_norm = "final_layernorm";
  names.mlp.norm = "pre_ff_layernorm";
  names.mlp.up = {"feed_forward.gate_proj", "feed_forward.up_proj"};
  names.mlp.down = "feed_forward.down_proj";
  names.of<Experts>().router = "feed_forward.router";
  names.of<Experts>().up = {"feed_forward.experts.{}.gate_proj", "feed_forward.experts.{}.up_proj"};
  names.of<Experts>().down = "feed_forward.experts.{}.down_proj";
  return spec;
}

std::span<const Family> mamba_families() {
  static constexpr Family kRows[] = {
      {"FalconMambaForCausalLM", describe_falcon_mamba},
      {"JambaForCausalLM", describe_jamba},
      {"JambaForSequenceClassification", describe_decoder_classifier<describe_jamba>},
      {"Mamba2ForCausalLM", describe_mamba2},
      {"MambaForCausalLM", describe_mamba},
  };
  return kRows;
}

}  // namespace octavo
