// LongCat-Flash (Meituan, 2025). One of its layers consists of two layers with latent attention and an MLP
// each, and of experts. The experts read the input of the first MLP, and their output is added after the
// second MLP. Some experts are identity experts.
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_longcat(const Config& file) {
  const Config config =
      file.with_names({{"num_hidden_layers", "num_layers"}, {"intermediate_size", "ffn_hidden_size"}});
  TRY(ModelSpec spec, describe_latent(config));
  if (spec.layers.size() > 512)
    return invalid("num_layers", "{} is {}, but must be in [1, 512]", config.where("num_hidden_layers"),
                   spec.layers.size());
  LayerSpec layer = spec.layers[0];
  auto& attention = std::get<LatentAttention>(layer.mixer);
  if (attention.q_rank == 0) return invalid("q_lora_rank", "{} is missing", config.where("q_lora_rank"));
  const auto dim = static_cast<double>(spec.dim);
  TRY(const bool q_scaled, config.boolean("mla_scale_q_lora", true));
  TRY(const bool kv_scaled, config.boolean("mla_scale_kv_lora", true));
  if (q_scaled) attention.scale *= static_cast<float>(std::sqrt(dim / attention.q_rank));
  if (kv_scaled) attention.latent_scale = static_cast<float>(std::sqrt(dim / attention.kv_rank));
  Experts experts{
      .count = 0, .router = {.scores = RouterScores::softmax}, .choice_bias = true, .expert = layer.mlp()};
  TRY(experts.count, config.integer("n_routed_experts", {1, kMaxExperts}));
  TRY(experts.identities, config.integer("zero_expert_num", {0, kMaxExperts - experts.count}, 0));
  TRY_VOID(support(config, "zero_expert_type", "identity"));
  TRY(experts.router.chosen, config.integer("moe_topk", {1, experts.count + experts.identities}));
  TRY(experts.router.scale, multiplier(config, "routed_scaling_factor"));
  TRY(experts.expert.hidden, config.integer("expert_ffn_hidden_size", {1, 1 << 20}));
  TRY_VOID(refuse(config, "router_bias", true));
  const int layers = static_cast<int>(spec.layers.size());
  spec.layers.clear();
  for (int i = 0; i < 2 * layers; ++i) {
    layer.number = i / 2;
    layer.part = i % 2 == 0 ? "0" : "1";
    layer.shortcut = i % 2 == 0 ? std::optional(experts) : std::nullopt;
    spec.layers.push_back(layer);
  }
  Names& names = spec.names;
  names.attention.norm = "input_layernorm.#";
  names.mlp.norm = "post_attention_layernorm.#";
  for (std::string* name :
       {&names.of<LatentAttention>().q_down, &names.of<LatentAttention>().q_norm,
        &names.of<LatentAttention>().q_up, &names.of<LatentAttention>().down,
        &names.of<LatentAttention>().norm, &names.of<LatentAttention>().up, &names.attention.out})
    name->insert(std::string_view("self_attn.").size(), "#.");
  names.mlp.up = {"mlps.#.gate_proj", "mlps.#.up_proj"};
  names.mlp.down = "mlps.#.down_proj";
  names.of<Experts>().router = "mlp.router.classifier";
  names.of<Experts>().choice_bias = "mlp.router.e_score_correction_bias";
  names.ignorable.emplace_back("model.mtp.*");
  return spec;
}

// LongCat-Flash-Lite (Meituan, 2026): the mean of a token's embedding and of embeddings of the last tokens.
static Result<ModelSpec> describe_longcat_ngram(const Config& config) {
  TRY(ModelSpec spec, describe_longcat(config));
  if (!config.has("ngram_vocab_size_ratio")) return spec;
  TRY(const double ratio, config.number("ngram_vocab_size_ratio", {1e-3, 1e4}));
  TRY(const int longest, config.integer("emb_neighbor_num", {2, kMaxGram}));
  TRY(const int each, config.integer("emb_split_num", {1, kMaxGramTables / (longest - 1)}));
  GramInput grams;
  TRY(grams.stop, config.integer("eos_token_id", {0, kMaxVocab}));
  const int count = each * (longest - 1);
  if (spec.dim < count)
    return invalid("emb_split_num", "{} {} makes {} tables, but hidden_size is only {}",
                   config.where("emb_split_num"), each, count, spec.dim);
  grams.dim = spec.dim / count;
  for (int i = 0; i < count; ++i)
    grams.tables.push_back(
        {.length = 2 + i / each, .rows = static_cast<std::int64_t>(ratio * spec.vocab + 2 * i + 1)});
  if (grams.tables.back().rows > INT32_MAX)
    return invalid("ngram_vocab_size_ratio", "{} {} makes tables of {} rows, but at most {} are supported",
                   config.where("ngram_vocab_size_ratio"), ratio, grams.tables.back().rows, INT32_MAX);
  grams.scale = spec.embedding.scale = 1 / static_cast<float>(count + 1);
  spec.inputs.grams = std::move(grams);
  return spec;
}

std::span<const Family> longcat_families() {
  static constexpr Family kRows[] = {{"LongcatFlashForCausalLM", describe_longcat},
                                     {"LongcatFlashNgramForCausalLM", describe_longcat_ngram}};
  return kRows;
}

}  // namespace octavo
