#include "model/weight_loader.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/thread_pool.h"
#include "model/rope.h"

namespace octavo {
namespace {

// Floats between the beginnings of two vectors are a multiple of this: a cache line.
constexpr std::int64_t kVectorAlign = 16;

std::int64_t padded(std::int64_t size) { return (size + kVectorAlign - 1) / kVectorAlign * kVectorAlign; }

float element(const std::byte* data, DType type, std::size_t i) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));  // a tensor's data may lie at any byte
    return to_f32(value);
  };
  if (type == DType::bf16) return read(BFloat16{});
  if (type == DType::f16) return read(Float16{});
  return read(float{});
}

void put(std::byte* data, DType type, std::size_t i, float value) {
  const auto write = [&]<class T>(T narrow) { std::memcpy(data + i * sizeof(T), &narrow, sizeof(T)); };
  if (type == DType::bf16) return write(to_bf16(value));
  if (type == DType::f16) return write(to_f16(value));
  write(value);
}

// The tensor in this format: itself, or, when its format or its alignment does not fit, a copy in `copy`.
View in_format(const StoredTensor& tensor, DType type, std::vector<std::byte>& copy) {
  View view = view_of(tensor);
  const bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % size_of(type) == 0;
  if (view.dtype == type && aligned) return view;
  const auto count = static_cast<std::size_t>(view.elements());
  copy.resize(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i)
    put(copy.data(), type, i, element(tensor.bytes.data(), view.dtype, i));
  view.data = copy.data();
  view.dtype = type;
  return view;
}

// The format in which a matrix is kept: the one asked for, else that of its tensors, the widest when they
// differ.
DType storage_of(const MatrixParameter& parameter, const Checkpoint& checkpoint, ModelDType wanted) {
  if (wanted == ModelDType::bfloat16) return DType::bf16;
  if (wanted == ModelDType::float16) return DType::f16;
  const DType first = *checkpoint.find(parameter.parts[0].name)->dtype;
  const bool agree = std::ranges::all_of(
      parameter.parts, [&](const Slot& slot) { return checkpoint.find(slot.name)->dtype == first; });
  return agree ? first : DType::f32;
}

// Checks and prepares one matrix, then lets go of its pages.
Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter, DType storage,
                              DType activation, Backend& backend) {
  std::vector<std::vector<std::byte>> copies(parameter.parts.size());
  std::vector<View> views;
  for (std::size_t i = 0; i < parameter.parts.size(); ++i) {
    const StoredTensor& tensor = *checkpoint.find(parameter.parts[i].name);
    TRY_VOID(check_finite(tensor));
    View view = in_format(tensor, storage, copies[i]);
    if (parameter.transposed) {
      std::swap(view.shape[0], view.shape[1]);
      std::swap(view.stride[0], view.stride[1]);
    }
    views.push_back(view);
  }
  if (!parameter.order.empty()) {
    const View whole = std::exchange(views, {})[0];
    for (const RowRange& range : parameter.order) views.push_back(whole.rows(range.begin, range.count));
  }
  TRY(WeightPtr weight, backend.ops.prepare(*backend.device, {.parts = views, .activation = activation}));
  for (const Slot& slot : parameter.parts) checkpoint.release(*checkpoint.find(slot.name));
  return weight;
}

Result<std::vector<float>> load_vector(const Checkpoint& checkpoint, const VectorParameter& parameter) {
  std::vector<float> stored;
  for (const Slot& slot : parameter.parts) {
    const StoredTensor& tensor = *checkpoint.find(slot.name);
    TRY_VOID(check_finite(tensor));
    for (std::size_t i = 0; i < static_cast<std::size_t>(slot.shape[0]); ++i) {
      stored.push_back(element(tensor.bytes.data(), *tensor.dtype, i) + parameter.offset);
    }
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
        arena_(backend, model.vectors) {}

  Result<> load() {
    choose_activation();
    model_.layers.resize(parameters_.layers.size());
    TRY_VOID(load_vectors());
    collect_matrices();
    return load_matrices();
  }

 private:
  struct Job {
    const MatrixParameter* parameter;
    WeightPtr* weight;
  };

  void choose_activation() {
    const DType storage = storage_of(parameters_.layers[0].qkv.weight, checkpoint_, options_.dtype);
    const bool brain = storage == DType::bf16 && options_.dtype != ModelDType::float32;
    model_.activation = brain ? DType::bf16 : DType::f32;
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
    TRY(const std::vector<float> weight, load_vector(checkpoint_, parameter.weight));
    const std::int64_t size = parameter.weight.size;
    norm.weight = row > 0 ? arena_.put(weight, {size / row, row}) : arena_.put(weight, {size});
    return load_bias(parameter.bias, norm.bias);
  }

  Result<> load_bias(const VectorParameter& parameter, View& bias) {
    if (parameter.parts.empty()) return {};
    TRY(const std::vector<float> values, load_vector(checkpoint_, parameter));
    bias = arena_.put(values, {parameter.size});
    return {};
  }

  void load_ropes() {
    for (const RopeSpec& spec : model_.spec.ropes) {
      const RopeTables tables = rope_tables(spec, model_.max_model_len);
      const std::int64_t pairs = spec.rotary_dim / 2;
      model_.ropes.push_back({.cos = arena_.put(tables.cos, {model_.max_model_len, pairs}),
                              .sin = arena_.put(tables.sin, {model_.max_model_len, pairs}),
                              .rotary_dim = spec.rotary_dim,
                              .interleaved = spec.interleaved});
    }
  }

  // The largest come first, so that the threads finish together.
  void collect_matrices() {
    add_matrix(parameters_.embedding, model_.embedding);
    add_matrix(parameters_.positions, model_.positions);
    add_matrix(parameters_.lm_head, model_.own_lm_head);
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const LayerParameters& p = parameters_.layers[i];
      LayerWeights& w = model_.layers[i];
      add_matrix(p.qkv.weight, w.qkv.weight);
      add_matrix(p.out.weight, w.out.weight);
      add_matrix(p.up.weight, w.up.weight);
      add_matrix(p.down.weight, w.down.weight);
    }
    std::ranges::sort(jobs_, std::ranges::greater{},
                      [](const Job& job) { return job.parameter->rows * job.parameter->cols; });
  }

  void add_matrix(const MatrixParameter& parameter, WeightPtr& weight) {
    if (!parameter.parts.empty()) jobs_.push_back({&parameter, &weight});
  }

  Result<> load_matrices() {
    std::vector<Result<>> results(jobs_.size());
    std::mutex progress_mutex;
    std::size_t done = 0;
    ThreadPool pool(options_.threads > 0 ? options_.threads : usable_processors());
    pool.for_ranges(static_cast<std::int64_t>(jobs_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        results[i] = load_one(jobs_[i]);
        if (!options_.progress) continue;
        const std::lock_guard lock(progress_mutex);
        for (const Slot& slot : jobs_[i].parameter->parts) done += checkpoint_.find(slot.name)->bytes.size();
        options_.progress(done, checkpoint_.bytes());
      }
    });
    for (const Result<>& result : results) {
      if (!result) return result;
    }
    return {};
  }

  Result<> load_one(const Job& job) {
    const DType storage = storage_of(*job.parameter, checkpoint_, options_.dtype);
    TRY(*job.weight, load_matrix(checkpoint_, *job.parameter, storage, model_.activation, backend_));
    return {};
  }

  const Checkpoint& checkpoint_;
  const Parameters& parameters_;
  Backend& backend_;
  const LoadOptions& options_;
  Model& model_;
  VectorArena arena_;
  std::vector<Job> jobs_;
};

}  // namespace

Result<> load_weights(const Checkpoint& checkpoint, const Parameters& parameters, Backend& backend,
                      const LoadOptions& options, Model& model) {
  return Loader(checkpoint, parameters, backend, options, model).load();
}

}  // namespace octavo
