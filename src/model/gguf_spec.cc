#include "model/gguf_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>

#include "model/families/families.h"
#include "model/gguf/architectures.h"
#include "model/gguf/config.h"
#include "model/gguf/encoder.h"
#include "model/gguf/head.h"
#include "model/gguf/names.h"

namespace octavo {
namespace {

void adapt(LayerSpec& layer, const GgufLayers& layers) {
  if (auto* attention = std::get_if<Attention>(&layer.mixer)) {
    attention->biases.qkv = layers.have("attn_qkv.bias") || layers.have("attn_q.bias");
    attention->biases.out = layers.have("attn_output.bias");
    attention->norms.qk.weight_offset = 0;
  }
  if (auto* mlp = std::get_if<Mlp>(&layer.feed_forward)) {
    mlp->up_bias = layers.have("ffn_up.bias");
    mlp->down_bias = layers.have("ffn_down.bias");
  }
  // GGUF files lack the bias that Nomic's experts share.
  if (auto* experts = std::get_if<Experts>(&layer.feed_forward)) experts->sum_bias = false;
  for (NormSpec* norm : {&layer.pre_norm, &layer.post_norm}) norm->weight_offset = 0;
  layer.last_offset.reset();
  // Files of Qwen3-Next and Qwen3.5 order the rows of b and a differently. In Qwen3-Next, the rows for the
  // value heads of one key head are adjacent.
  if (auto* net = std::get_if<DeltaNet>(&layer.mixer)) net->tiled = layers.have("ssm_beta.weight");
  layer.scales.stored = layer.scales.stored && layers.have("layer_output_scale.weight");
}

void adapt_halves(ModelSpec& spec, const Gguf& gguf) {
  ModelSpec tower = *spec.media.tower;
  tower.names = gguf_half_names("enc.", gguf);
  tower.names.ignorable = {"dec.*", "output.weight"};
  spec.names = gguf_half_names("dec.", gguf);
  spec.names.ignorable = {"enc.*", "dec.blk.0.cross_attn_rel_b.weight"};
  spec.other_names.reset();
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
}

void adapt(ModelSpec& spec, const Gguf& gguf, bool interleaved) {
  if (spec.has_cross()) return adapt_halves(spec, gguf);
  if (spec.architecture == "T5EncoderModel") {
    spec.names = gguf_half_names("enc.", gguf);
    spec.names.ignorable = {"output.weight"};
    return;
  }
  const GgufLayers layers(gguf);
  for (LayerSpec& layer : spec.layers) adapt(layer, layers);
  spec.final_norm.weight_offset = 0;
  spec.logits.bias = gguf.find("output.bias") != nullptr;
  spec.embedding.scale_rounds = false;  // llama.cpp does not round the scale
  for (RopeSpec& rope : spec.ropes) rope.interleaved = rope.interleaved || interleaved;
  spec.names = gguf_names(spec, gguf, layers);
  // Layers that read another layer's keys and values may still have unused key and value matrices.
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (const auto* attention = std::get_if<Attention>(&spec.layers[i].mixer);
        attention != nullptr && attention->source >= 0)
      for (const char* unused : {"attn_k", "attn_v", "attn_k_norm"})
        spec.names.ignorable.push_back(fmt::format("blk.{}.{}.weight", i, unused));
  // The first layer of RWKV-7 has no earlier layer to mix values with.
  if (!spec.layers.empty() && std::holds_alternative<TimeMix>(spec.layers[0].mixer))
    for (const char* unused : {"v0", "v1", "v2"})
      spec.names.ignorable.push_back(fmt::format("blk.0.time_mix_{}.weight", unused));
  spec.other_names.reset();
  // Not supported: the names of the prediction layer's tensors in GGUF files are not known.
  spec.predictor.reset();
}

// Returns xIELU's parameters: one for all layers, or one per layer.
Result<std::vector<double>> xielu_numbers(const Gguf& gguf, const std::string& key, std::size_t layers) {
  std::vector<double> numbers;
  if (gguf.metadata.is_list(key)) {
    TRY(numbers, gguf.metadata.numbers(key));
  } else {
    TRY(const auto one, gguf.metadata.number(key));
    if (one) numbers.assign(layers, *one);
  }
  if (numbers.size() != layers)
    return field_failure(key, ErrorCode::corrupt, "{}: {} has {} items, but the model has {} layers",
                         gguf.metadata.what(), key, numbers.size(), layers);
  if (std::ranges::all_of(numbers, [](double one) { return std::isfinite(one); })) return numbers;
  return field_failure(key, ErrorCode::corrupt, "{}: {}: all values must be finite", gguf.metadata.what(),
                       key);
}

// Sets Apertus's parameters of xIELU. Their metadata keys lack the architecture's prefix.
Result<> set_slopes(ModelSpec& spec, const Gguf& gguf) {
  const auto is_xielu = [](const LayerSpec& layer) {
    const auto* mlp = std::get_if<Mlp>(&layer.feed_forward);
    return mlp != nullptr && mlp->activation == Activation::xielu;
  };
  if (std::ranges::none_of(spec.layers, is_xielu)) return {};
  constexpr std::pair<const char*, double> kConstants[] = {{"xielu.beta", 0.5}, {"xielu.eps", -1e-6}};
  for (const auto& [key, constant] : kConstants) {
    TRY(const std::vector<double> stored, xielu_numbers(gguf, key, spec.layers.size()));
    for (const double one : stored)
      if (std::abs(one / constant - 1) > 0.01)  // files contain the value rounded to BF16
        return field_failure(key, ErrorCode::unsupported, "{}: {} has {}, but only {} is supported",
                             gguf.metadata.what(), key, one, constant);
  }
  TRY(const auto above, xielu_numbers(gguf, "xielu.alpha_p", spec.layers.size()));
  TRY(const auto below, xielu_numbers(gguf, "xielu.alpha_n", spec.layers.size()));
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].mlp().slopes = {static_cast<float>(above[i]), static_cast<float>(below[i])};
  return {};
}

// Returns an error if the router's scoring function in the file differs from the family's.
Result<> check_router(const ModelSpec& spec, const Gguf& gguf, std::string_view architecture) {
  // other values mean a softmax over the selected experts
  constexpr double kSoftmax = 1, kSigmoid = 2, kSqrtSoftplus = 4;
  const std::string key = fmt::format("{}.expert_gating_func", architecture);
  TRY(const auto stored, gguf.metadata.number(key));
  for (const LayerSpec& layer : spec.layers) {
    const auto* experts = std::get_if<Experts>(&layer.feed_forward);
    if (experts == nullptr || stored.value_or(0) == 0) continue;
    const double own = experts->router.scores == RouterScores::sigmoid         ? kSigmoid
                       : experts->router.scores == RouterScores::sqrt_softplus ? kSqrtSoftplus
                                                                               : kSoftmax;
    const bool of_chosen = *stored != kSigmoid && *stored != kSqrtSoftplus;
    if (*stored == own || (own == kSoftmax && of_chosen && experts->router.renormalise)) continue;
    return field_failure("expert_gating_func", ErrorCode::unsupported,
                         "{}: {} is {}, which is not supported here: must be {}", gguf.metadata.what(), key,
                         *stored, own);
  }
  return {};
}

}  // namespace

Result<ModelSpec> gguf_spec(const Gguf& gguf, const Gguf* mmproj) {
  TRY(const auto name, gguf.metadata.text("general.architecture"));
  if (name == kEncoderArchitecture)
    return invalid(
        "model",
        "{} is an mmproj file, which has only the encoder of a model: give the file of the language "
        "model, and this file with --mmproj",
        gguf.metadata.what());
  const auto architectures = gguf_architectures();
  const auto architecture = std::ranges::find(architectures, name.value_or(""), &GgufArchitecture::name);
  if (architecture == architectures.end())
    return field_failure("general.architecture", ErrorCode::unsupported,
                         "{}: general.architecture is \"{}\", which is not supported: must be one of {}",
                         gguf.metadata.what(), name.value_or(""),
                         fmt::join(architectures | std::views::transform(&GgufArchitecture::name), ", "));
  TRY(Config config, gguf_config(gguf, *architecture));
  std::optional<GgufEncoder> encoder;
  if (mmproj != nullptr) {
    TRY(encoder, GgufEncoder::of(gguf, *mmproj));
    config = encoder->config(config);
  }
  TRY(ModelSpec spec, describe(config));
  TRY_VOID(check_router(spec, gguf, architecture->name));
  TRY_VOID(set_gguf_head(spec, gguf, architecture->name));
  TRY_VOID(set_slopes(spec, gguf));
  adapt(spec, gguf, architecture->traits.interleaved);
  if (encoder) encoder->adapt(spec);
  TRY(const auto predictors,
      gguf.metadata.count(fmt::format("{}.nextn_predict_layers", architecture->name), kGgufLayersMax));
  for (std::int64_t i = 0; i < predictors.value_or(0); ++i)  // prediction layers have the last indices
    spec.names.ignorable.push_back(fmt::format("blk.{}.*", std::ssize(spec.layers) + i));
  return spec;
}

Result<GgufImages> gguf_images(const std::string& path, const std::string& mmproj) {
  TRY(const Gguf model, Gguf::open(path));
  TRY(const Gguf file, Gguf::open(mmproj));
  TRY(const GgufEncoder encoder, GgufEncoder::of(model, file));
  return GgufImages{Config::of(encoder.processor(), mmproj, {}), std::string(encoder.token())};
}

}  // namespace octavo
