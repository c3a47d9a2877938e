#include "model/model.h"

#include "model/config.h"
#include "model/families/families.h"
#include "model/gguf_spec.h"
#include "model/parameters.h"
#include "model/quantization_config.h"
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

}  // namespace

Result<ModelSpec> load_spec(const std::string& path) {
  if (is_gguf(path)) {
    TRY(const Gguf gguf, Gguf::open(path));
    return gguf_spec(gguf);
  }
  TRY(const Config config, Config::load(path));
  return describe(config);
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
  TRY(model->spec, load_spec(path));
  TRY(model->max_model_len, checked_length(model->spec, options.max_model_len));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  TRY(const Parameters parameters, checked_parameters(model->spec, checkpoint));
  TRY_VOID(load_weights(checkpoint, parameters, backend, options, *model));
  return model;
}

std::size_t Model::weight_bytes() const {
  std::size_t sum = vectors.bytes();
  const auto add = [&](const WeightPtr& weight) { sum += weight != nullptr ? weight->bytes() : 0; };
  for (const WeightPtr* weight : {&embedding, &positions, &own_lm_head}) add(*weight);
  for (const LayerWeights& layer : layers) {
    for (const Linear* linear : {&layer.qkv, &layer.out, &layer.up, &layer.down}) add(linear->weight);
  }
  return sum;
}

}  // namespace octavo
