#include "model/weight_loader.h"

#include "base/thread_pool.h"
#include "model/cache_layout.h"
#include "model/load_matrix.h"
#include "model/rope.h"

namespace octavo {
namespace {

// Floats between the beginnings of two vectors are a multiple of this: a cache line.
constexpr std::int64_t kVectorAlign = 16;

std::int64_t padded(std::int64_t size) { return (size + kVectorAlign - 1) / kVectorAlign * kVectorAlign; }

Result<std::vector<float>> load_vector(const Checkpoint& checkpoint, const VectorParameter& parameter,
                                       ThreadPool& pool) {
  std::vector<float> stored;
  for (const Slot& slot : parameter.parts) {
    const StoredTensor& tensor = *checkpoint.find(slot.name);
    TRY_VOID(check_finite(tensor, pool));
    for (std::int64_t i = 0; i < slot.shape[0]; ++i)
      stored.push_back(number_at(tensor, i) + parameter.offset);
  }
  if (parameter.order.empty()) return stored;
  std::vector<float> ordered;
  for (const RowRange& range : parameter.order) {
    ordered.insert(ordered.end(), stored.begin() + range.begin, stored.begin() + range.begin + range.count);
  }
  return ordered;
}

// All vectors of a model, one after the other in one buffer.
class VectorArena {
 public:
  VectorArena(Backend& backend, Buffer& buffer) : backend_(backend), buffer_(buffer) {}

  View put(std::span<const float> values, std::initializer_list<std::int64_t> shape) {
    const View view = View::of(static_cast<float*>(buffer_.data()) + used_, DType::f32, shape);
    used_ += padded(view.elements());
    CHECK(static_cast<std::size_t>(used_) * sizeof(float) <= buffer_.bytes());
    backend_.device->upload(*backend_.stream, view, values.data());
    backend_.stream->synchronize();
    return view;
  }

 private:
  Backend& backend_;
  Buffer& buffer_;
  std::int64_t used_ = 0;
};

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const Parameters& parameters, Backend& backend,
         const LoadOptions& options, Model& model)
      : checkpoint_(checkpoint),
        parameters_(parameters),
        backend_(backend),
        options_(options),
        model_(model),
        arena_(backend, model.vectors),
        pool_(options.threads > 0 ? options.threads : usable_processors()) {}

  Result<> load() {
    TRY_VOID(check_quantization());
    choose_formats();
    const CacheLayout cache = cache_layout(model_.spec, {.dtype = model_.activation});
    TRY_VOID(backend_.ops.supports(cache.kv, model_.spec.layers[0].attention.q_heads));
    model_.layers.resize(parameters_.layers.size());
    TRY_VOID(load_vectors());
    return load_matrices();
  }

 private:
  // Quantised matrices stay as they are, so that one at least must be plain.
  Result<> check_quantization() {
    if (options_.quantization == Encoding::plain) return {};
    bool plain = false;
    for_each_parameter(parameters_, [&](const auto& p) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(p)>, MatrixParameter>)
        for (const Slot& slot : p.parts)
          plain |= &p != &parameters_.positions && checkpoint_.find(slot.name)->plain();
    });
    if (plain) return {};
    const StoredTensor& table = *checkpoint_.find(parameters_.embedding.parts[0].name);
    return invalid("quantization", "must be none, not {}: every matrix is quantised already ({} is {})",
                   name(options_.quantization), table.name, table.format);
  }

  // All plain matrices are kept in one format: the one asked for, else the checkpoint's.
  void choose_formats() {
    plain_ = plain_format(parameters_, checkpoint_);
    if (options_.dtype == ModelDType::bfloat16) plain_ = DType::bf16;
    if (options_.dtype == ModelDType::float16) plain_ = DType::f16;
    model_.activation = options_.dtype == ModelDType::float32 ? DType::f32 : backend_.ops.activation(plain_);
  }

  Result<> load_vectors() {
    std::int64_t floats = 0;
    for_each_parameter(parameters_, [&](const auto& p) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(p)>, VectorParameter>)
        floats += padded(p.size);
    });
    for (const RopeSpec& rope : model_.spec.ropes) {
      floats += 2 * padded(std::int64_t{model_.max_model_len} * (rope.rotary_dim / 2));
    }
    TRY(model_.vectors, backend_.device->allocate(static_cast<std::size_t>(floats) * sizeof(float)));
    for (std::size_t i = 0; i < model_.layers.size(); ++i) TRY_VOID(load_layer_vectors(i));
    TRY_VOID(load_norm(parameters_.final_norm, 0, model_.final_norm));
    load_ropes();
    return {};
  }

  Result<> load_layer_vectors(std::size_t i) {
    const LayerParameters& p = parameters_.layers[i];
    LayerWeights& w = model_.layers[i];
    TRY_VOID(load_norm(p.attention_norm, 0, w.attention_norm));
    TRY_VOID(load_norm(p.attention_post_norm, 0, w.attention_post_norm));
    TRY_VOID(load_norm(p.mlp_norm, 0, w.mlp_norm));
    TRY_VOID(load_norm(p.mlp_post_norm, 0, w.mlp_post_norm));
    const Attention& a = model_.spec.layers[i].attention;
    const int row = a.qk_norm == QkNorm::per_head ? a.head_dim : 0;
    TRY_VOID(load_norm(p.q_norm, row, w.q_norm));
    TRY_VOID(load_norm(p.k_norm, row, w.k_norm));
    TRY_VOID(load_bias(p.qkv.bias, w.qkv.bias));
    TRY_VOID(load_bias(p.out.bias, w.out.bias));
    TRY_VOID(load_bias(p.up.bias, w.up.bias));
    return load_bias(p.down.bias, w.down.bias);
  }

  // row > 0: the weight is a matrix of rows this long.
  Result<> load_norm(const NormParameter& parameter, int row, Norm& norm) {
    norm.kind = parameter.spec.kind;
    norm.eps = parameter.spec.eps;
    if (norm.kind == NormKind::none) return {};
    TRY(const std::vector<float> weight, load_vector(checkpoint_, parameter.weight, pool_));
    const std::int64_t size = parameter.weight.size;
    norm.weight = row > 0 ? arena_.put(weight, {size / row, row}) : arena_.put(weight, {size});
    return load_bias(parameter.bias, norm.bias);
  }

  Result<> load_bias(const VectorParameter& parameter, View& bias) {
    if (parameter.parts.empty()) return {};
    TRY(const std::vector<float> values, load_vector(checkpoint_, parameter, pool_));
    bias = arena_.put(values, {parameter.size});
    return {};
  }

  void load_ropes() {
    for (const RopeSpec& spec : model_.spec.ropes) {
      const RopeTables tables = rope_tables(spec, model_.max_model_len, pool_);
      const std::int64_t pairs = spec.rotary_dim / 2;
      model_.ropes.push_back({.cos = arena_.put(tables.cos, {model_.max_model_len, pairs}),
                              .sin = arena_.put(tables.sin, {model_.max_model_len, pairs}),
                              .rotary_dim = spec.rotary_dim,
                              .interleaved = spec.interleaved});
    }
  }

  Result<> load_matrices() {
    const Encoding layers = options_.quantization;
    const Encoding ends = layers == Encoding::plain ? Encoding::plain : Encoding::int8;
    TRY_VOID(load(parameters_.embedding, ends, model_.embedding));
    TRY_VOID(load(parameters_.positions, Encoding::plain, model_.positions));
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const LayerParameters& p = parameters_.layers[i];
      LayerWeights& w = model_.layers[i];
      TRY_VOID(load(p.qkv.weight, layers, w.qkv.weight));
      TRY_VOID(load(p.out.weight, layers, w.out.weight));
      TRY_VOID(load(p.up.weight, layers, w.up.weight));
      TRY_VOID(load(p.down.weight, layers, w.down.weight));
    }
    return load(parameters_.lm_head, ends, model_.own_lm_head);
  }

  Result<> load(const MatrixParameter& parameter, Encoding quantization, WeightPtr& weight) {
    if (parameter.parts.empty()) return {};
    const MatrixFormats formats{
        .plain = plain_, .quantization = quantization, .activation = model_.activation};
    TRY(weight, load_matrix(checkpoint_, parameter, formats, backend_, pool_));
    CHECK(weight->activation() == model_.activation, "{} made of {}", name(weight->activation()),
          name(plain_));
    for (const Slot& slot : parameter.parts) bytes_done_ += stored_bytes(*checkpoint_.find(slot.name));
    if (options_.progress) options_.progress(bytes_done_, checkpoint_.bytes());
    return {};
  }

  const Checkpoint& checkpoint_;
  const Parameters& parameters_;
  Backend& backend_;
  const LoadOptions& options_;
  Model& model_;
  VectorArena arena_;
  ThreadPool pool_;
  DType plain_ = DType::f32;
  std::size_t bytes_done_ = 0;
};

}  // namespace

Result<> load_weights(const Checkpoint& checkpoint, const Parameters& parameters, Backend& backend,
                      const LoadOptions& options, Model& model) {
  return Loader(checkpoint, parameters, backend, options, model).load();
}

}  // namespace octavo
