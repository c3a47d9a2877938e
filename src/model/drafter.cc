#include "model/drafter.h"

#include <algorithm>
#include <span>
#include <utility>

#include "model/config.h"
#include "model/families/bases.h"
#include "model/families/families.h"
#include "model/weight_loader.h"

namespace octavo {
namespace {

constexpr std::string_view kField = "speculative_config";
constexpr int kEagle3LayersMax = 16;

ModelDType stored_as(DType activation) {
  switch (activation) {
    case DType::bf16:
      return ModelDType::bfloat16;
    case DType::f16:
      return ModelDType::float16;
    default:
      return ModelDType::float32;
  }
}

Result<std::unique_ptr<Model>> load(ModelSpec spec, const Checkpoint& checkpoint, const Model& other,
                                    Backend& backend, const LoadOptions& options) {
  auto model = std::make_unique<Model>();
  model->spec = std::move(spec);
  model->max_model_len = other.max_model_len;
  TRY(model->network, checked_network(model->spec, checkpoint));
  model->network.ends->other = &other.whole_ends();
  TRY_VOID(load_beside(other, checkpoint, backend, options, model->network.parameters(), *model));
  return model;
}

// Describes the network of a multi-token prediction layer.
Result<ModelSpec> predictor_spec(const ModelSpec& other) {
  if (!other.predictor)
    return field_failure(kField, ErrorCode::unsupported, "{} has no layers for multi-token prediction",
                         other.architecture);
  const Predictor& predictor = *other.predictor;
  ModelSpec spec = other;
  spec.predictor = {};
  spec.media.tower = {};
  spec.shard = {};
  spec.stage = {};
  spec.layers = {other.layers[predictor.like]};
  spec.inputs.hidden = {.dim = other.dim,
                        .vocab = other.vocab,
                        .token_norm = other.final_norm,
                        .hidden_norm = other.final_norm,
                        .hidden_first = predictor.hidden_first,
                        .normed_output = predictor.normed_output};
  if (predictor.final_norm.empty()) spec.final_norm = {};
  for (Names* names : {&spec.names, spec.other_names ? &*spec.other_names : nullptr}) {
    if (names == nullptr) continue;
    if (!predictor.prefixes.empty()) names->prefixes = predictor.prefixes;
    names->only_layer = predictor.layer;
    names->hidden = predictor.names;
    names->final_norm = predictor.final_norm;
    names->ignorable = {"*"};  // The target's other tensors are in the same checkpoint; they are ignored.
  }
  return spec;
}

// Describes an EAGLE head. Its layers are Llama's; some fields depend on the head's tensors.
Result<ModelSpec> eagle_layers(const Config& config, const Checkpoint& checkpoint, const Model& other, int most) {
  Config complete = config;
  complete.set_defaults(field_defaults("LlamaForCausalLM"));
  TRY(ModelSpec spec, describe_llama(complete));
  const int layers = static_cast<int>(spec.layers.size());
  if (layers > most)
    return field_failure(kField, ErrorCode::unsupported, "{} is {}, but must be at most {}",
                         config.where("num_hidden_layers"), layers, most);
  if (spec.vocab != other.spec.vocab)
    return invalid(
        kField,
        "the head has a vocabulary of {} tokens, but the model has {}: both must have the same vocabulary",
        spec.vocab, other.spec.vocab);
  const auto has = [&](std::string_view tensor) { return checkpoint.find(tensor) != nullptr; };
  spec.max_positions = other.max_model_len;
  spec.names.prefixes = {""};
  const std::string first = has("midlayer.self_attn.q_proj.weight") ? "midlayer." : "layers.0.";
  if (layers == 1) spec.names.only_layer = first;
  for (LayerSpec& layer : spec.layers) layer.attention().biases.qkv |= has(first + "self_attn.q_proj.bias");
  spec.names.hidden.joint = "fc";
  spec.names.ignorable = {"*.rotary_emb.inv_freq", "d2t", "t2d", "verifier_*"};
  spec.inputs.hidden = {.dim = other.spec.dim,
                        .vocab = other.spec.vocab,
                        .joint_bias = has("fc.bias"),
                        .own_embedding = has("embed_tokens.weight")};
  if (!spec.inputs.hidden->own_embedding && spec.dim != other.spec.dim)
    return invalid(kField, "the head has {} columns, but the model's embed_tokens, which it uses, has {}",
                   spec.dim, other.spec.dim);
  return spec;
}

// Returns the target's token id for each id of the head. The tensor d2t contains the target's id minus the
// head's id.
Result<std::vector<std::int32_t>> read_tokens(const Checkpoint& checkpoint, int draft_vocab, int vocab) {
  std::vector<std::int32_t> tokens;
  const StoredTensor* d2t = checkpoint.find("d2t");
  if (d2t == nullptr) {
    if (draft_vocab == vocab) return tokens;
    return failure(ErrorCode::corrupt,
                   "the head has {} of {} tokens, but the tensor d2t, which maps them, is missing",
                   draft_vocab, vocab);
  }
  TRY(const std::vector<std::int64_t> differences, integers_of(*d2t));
  if (std::cmp_not_equal(differences.size(), draft_vocab))
    return failure(ErrorCode::corrupt, "tensor d2t has {} numbers, but must be I64 with the shape [{}]",
                   differences.size(), draft_vocab);
  for (const std::int64_t difference : differences) {
    const auto number = std::ssize(tokens);
    if (difference < -number || difference >= vocab - number)
      return failure(ErrorCode::corrupt,
                     "tensor d2t: the id {} + {} must be below the size of the vocabulary, {}", number,
                     difference, vocab);
    tokens.push_back(static_cast<std::int32_t>(number + difference));
  }
  return tokens;
}

// Returns the target's layers that an EAGLE-3 head reads.
Result<std::vector<int>> read_layers(const Config& config, int layers) {
  constexpr std::string_view kLayers = "eagle_aux_hidden_state_layer_ids";
  TRY(const std::optional<Config> nested, config.object("eagle_config"));
  TRY(std::vector<int> ids,
      (nested && nested->has(kLayers) ? *nested : config).integers(kLayers, {0, layers - 1}));
  if (ids.empty()) ids = {2, layers / 2, layers - 3};  // EAGLE-3's default
  if (ids.size() > 8 || std::ranges::any_of(ids, [&](int id) { return id < 0 || id >= layers; }))
    return field_failure(kField, ErrorCode::unsupported,
                         "an EAGLE-3 head reads the layers {} (at most 8), but the model has only {} layers",
                         fmt::join(ids, ", "), layers);
  return ids;
}

}  // namespace

Result<> load_beside(const Model& other, const Checkpoint& checkpoint, Backend& backend, LoadOptions options,
                     ParameterList parameters, Model& model) {
  options.dtype = stored_as(other.activation);
  const auto loaded = load_weights(checkpoint, backend, options, std::move(parameters), model);
  TRY_VOID(checkpoint.intact());
  TRY_VOID(loaded);
  CHECK(model.activation == other.activation, "{} beside {}", name(model.activation), name(other.activation));
  return {};
}

Result<std::vector<std::int64_t>> integers_of(const StoredTensor& tensor) {
  if (tensor.format != "I64" || tensor.shape.size() != 1)
    return failure(ErrorCode::corrupt, "tensor {} is {} [{}], but must be a vector I64", tensor.name,
                   tensor.format, fmt::join(tensor.shape, ", "));
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(tensor.shape[0]));
  const std::span bytes = std::as_writable_bytes(std::span(numbers));
  CHECK(tensor.bytes.size() == bytes.size());
  std::ranges::copy(tensor.bytes, bytes.begin());
  return numbers;
}

Result<Drafter> load_predictor(const std::string& path, const Model& other, Backend& backend,
                               const LoadOptions& options) {
  TRY(ModelSpec spec, predictor_spec(other.spec));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  TRY(auto model, load(std::move(spec), checkpoint, other, backend, options));
  return Drafter{std::move(model)};
}

Result<Drafter> load_eagle(const std::string& path, const Model& other, Backend& backend,
                           const LoadOptions& options) {
  TRY(const Config config, Config::load(path));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  TRY(ModelSpec spec, eagle_layers(config, checkpoint, other, 1));
  if (spec.dim != other.spec.dim)
    return invalid(kField, "the head's hidden_size is {}, but the model's is {}: both must be equal",
                   spec.dim, other.spec.dim);
  spec.architecture = "EAGLE";
  spec.final_norm = {};
  spec.names.attention.norm.clear();
  TRY(auto model, load(std::move(spec), checkpoint, other, backend, options));
  return Drafter{std::move(model)};
}

Result<Drafter> load_eagle3(const std::string& path, const Model& other, Backend& backend,
                            const LoadOptions& options) {
  TRY(const Config config, Config::load(path));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  TRY(const std::optional<Config> nested, config.object("transformer_layer_config"));
  TRY(ModelSpec spec, eagle_layers(nested.value_or(config), checkpoint, other, kEagle3LayersMax));
  spec.architecture = "EAGLE-3";
  HiddenInput& input = *spec.inputs.hidden;
  input.joined = false;
  input.own_output = true;
  TRY(input.layers, read_layers(config, static_cast<int>(other.spec.layers.size())));
  TRY(input.normed_residual, config.boolean("norm_before_residual", false));
  input.hidden_norm = spec.final_norm;
  spec.names.hidden.hidden_norm =
      (spec.names.only_layer.empty() ? "layers.0." : spec.names.only_layer) + "hidden_norm";
  spec.layers[0].attention().input_dim = 2 * spec.dim;
  spec.logits.tied = false;
  TRY(spec.vocab, config.integer("draft_vocab_size", {1, spec.vocab}, spec.vocab));
  TRY(std::vector<std::int32_t> tokens, read_tokens(checkpoint, spec.vocab, other.spec.vocab));
  TRY(auto model, load(std::move(spec), checkpoint, other, backend, options));
  return Drafter{std::move(model), std::move(tokens)};
}

}  // namespace octavo
