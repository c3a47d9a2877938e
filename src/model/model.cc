#include "model/model.h"

#include <fmt/ranges.h>

#include "model/config.h"
#include "model/families/families.h"
#include "model/gguf_spec.h"
#include "model/quantization_config.h"
#include "model/sentence_transformers.h"
#include "model/shard.h"
#include "model/weight_loader.h"

namespace octavo {
namespace {

Result<int> checked_length(const ModelSpec& spec, std::optional<int> wanted) {
  if (!wanted) return spec.max_positions;
  if (*wanted < 1 || *wanted > spec.max_positions) {
    return invalid("max_model_len", "max_model_len is {}, this model takes 1 to {} tokens", *wanted,
                   spec.max_positions);
  }
  return *wanted;
}

// Tensors that do not fit may come from fields that config.json leaves out, so that defaults took their
// place.
Error with_absent_fields(Error error, const std::string& path) {
  if (is_gguf(path)) return error;
  const auto config = Config::load(path);
  std::vector<std::string_view> absent;
  for (const std::string_view field : {"hidden_size", "intermediate_size", "num_hidden_layers",
                                       "num_attention_heads", "num_key_value_heads", "vocab_size"})
    if (config && !config->has(field)) absent.push_back(field);
  if (!absent.empty())
    error.message += fmt::format(" (config.json leaves out {}, for which transformers' defaults were taken)",
                                 fmt::join(absent, ", "));
  return error;
}

}  // namespace

Result<ModelSpec> load_spec(const std::string& path, Runner runner) {
  ModelSpec spec;
  if (is_gguf(path)) {
    TRY(const Gguf gguf, Gguf::open(path));
    TRY(spec, gguf_spec(gguf));
  } else {
    TRY(const Config config, Config::load(path));
    TRY(spec, describe(config));
    const bool generates = !spec.head;
    if (runner != Runner::generate || !generates) TRY_VOID(read_sentence_transformers(path, spec));
  }
  if (runner == Runner::generate && spec.head)
    return invalid("runner", "{} models make vectors or scores of texts, they do not generate",
                   spec.architecture);
  // As vLLM has it for models that say no more.
  if (runner == Runner::pooling && !spec.head) spec.head = Head{.pool = Pool::last, .normalise = true};
  return spec;
}

Result<Checkpoint> open_checkpoint(const std::string& path) {
  if (is_gguf(path)) return Checkpoint::open(path);
  TRY(const Config config, Config::load(path));
  TRY(const PackedFormat packed, packed_format(config));
  return Checkpoint::open(path, packed);
}

Result<std::string_view> quantization_method(const std::string& path) {
  if (is_gguf(path)) return "gguf";
  TRY(const Config config, Config::load(path));
  TRY(const PackedFormat packed, packed_format(config));
  return name(packed.packing);
}

Result<std::unique_ptr<Model>> Model::load(const std::string& path, Backend& backend,
                                           const LoadOptions& options) {
  auto model = std::make_unique<Model>();
  TRY(model->spec, load_spec(path, options.runner));
  model->spec.shard = options.shard;
  TRY_VOID(check_shard(model->spec));
  if (options.shard.size > 1 && options.quantization != Encoding::plain)
    return invalid("quantization", "must be none where tensor_parallel_size is more than 1, got {}",
                   name(options.quantization));
  TRY(model->max_model_len, checked_length(model->spec, options.max_model_len));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  auto network = checked_network(model->spec, checkpoint);
  if (!network) return std::unexpected(with_absent_fields(std::move(network.error()), path));
  model->network = *std::move(network);
  const auto loaded = load_weights(checkpoint, backend, options, *model);
  TRY_VOID(checkpoint.intact());  // the cause of whatever else is wrong
  TRY_VOID(loaded);
  return model;
}

}  // namespace octavo
