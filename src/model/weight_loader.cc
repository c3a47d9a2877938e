#include "model/weight_loader.h"

#include <algorithm>
#include <cmath>

#include "base/host_memory.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "kernels/cuda_host_weights.h"
#include "model/host_weights.h"
#include "model/load_matrix.h"
#include "model/rope.h"
#include "model/support.h"

namespace octavo {
namespace {

// Alignment of vectors, in floats: one cache line.
constexpr std::int64_t kVectorAlign = 16;

std::int64_t padded(std::int64_t size) { return (size + kVectorAlign - 1) / kVectorAlign * kVectorAlign; }

std::vector<float> rows_of(const std::vector<float>& all, std::int64_t row, std::span<const RowRange> kept) {
  std::vector<float> rows;
  for (const RowRange& range : kept) {
    const auto begin = all.begin() + range.begin * row;
    rows.insert(rows.end(), begin, begin + range.count * row);
  }
  return rows;
}

// Concatenates stacked matrices of `rows` rows along the second dimension.
std::vector<float> side_by_side(const std::vector<float>& all, std::span<const Slot> parts,
                                std::int64_t rows) {
  std::vector<float> joined;
  for (std::int64_t i = 0; i < rows; ++i) {
    auto part = all.begin();
    for (const Slot& slot : parts) {
      const std::int64_t cols = slot.shape.back();
      joined.insert(joined.end(), part + i * cols, part + (i + 1) * cols);
      part += rows * cols;
    }
  }
  return joined;
}

Result<std::vector<float>> load_vector(const Checkpoint& checkpoint, const VectorParameter& parameter,
                                       ThreadPool& pool) {
  std::vector<float> stored = parameter.constant;
  for (const Slot& slot : parameter.parts) {
    const StoredTensor& tensor = *checkpoint.find(slot.name);
    if (!tensor.plain())  // check_slots() does not report vectors that are quantised rows
      return failure(ErrorCode::unsupported, "tensor {} is {}, but a vector must be F32, F16 or BF16",
                     slot.name, tensor.format);
    if (parameter.repeated) {
      const float number = number_at(tensor, 0);
      if (std::isnan(number)) return failure(ErrorCode::corrupt, "tensor {} is NaN", slot.name);
      return std::vector<float>(static_cast<std::size_t>(parameter.size), number);
    }
    if (parameter.below == 0) TRY_VOID(check_finite(tensor, pool));
    std::int64_t elements = 1;
    for (const std::int64_t size : slot.shape) elements *= size;
    for (std::int64_t i = 0; i < elements; ++i) {
      const float number = number_at(tensor, i);
      if (parameter.below > 0 && !(number >= 0 && number < static_cast<float>(parameter.below)))
        return failure(ErrorCode::corrupt, "tensor {}: {} is not in [0, {})", slot.name, number,
                       parameter.below);
      if (parameter.rates && number >= 0)
        return failure(ErrorCode::corrupt, "tensor {}: {} is not a decay rate: rates must be below 0",
                       slot.name, number);
      const float changed = parameter.change ? parameter.change(number) : number;
      stored.push_back(parameter.rates ? std::log(-number) : changed + parameter.offset);
      if (parameter.shares) stored.push_back(1 - number);
    }
  }
  if (parameter.parts.size() > 1 && parameter.parts[0].shape.size() == 2)
    stored = side_by_side(stored, parameter.parts, parameter.parts[0].shape[0]);
  if (parameter.scale) {
    const StoredTensor& scale = *checkpoint.find(parameter.scale->name);
    for (std::size_t i = 0; i < stored.size(); ++i)
      stored[i] *= number_at(scale, static_cast<std::int64_t>(i));
  }
  for (const Factor& part : parameter.factors)
    for (std::int64_t i = 0; i < part.count; ++i)
      stored[static_cast<std::size_t>(part.begin + i)] *= part.factor;
  if (!parameter.kept_rows.empty()) stored = rows_of(stored, parameter.row, parameter.kept_rows);
  if (parameter.order.empty()) return stored;
  std::vector<float> ordered;
  const std::int64_t rows = parameter.row > 0 ? parameter.size / parameter.row : 1,
                     row = std::ssize(stored) / rows;
  for (std::int64_t begin = 0; begin < rows * row; begin += row)
    for (const RowRange& range : parameter.order)
      for (std::int64_t i = 0; i < range.count; ++i)
        ordered.push_back(
            range.begin < 0 ? 0 : stored[static_cast<std::size_t>(begin + range.begin + i * range.step)]);
  return ordered;
}

// Stores all vectors of a model in one buffer.
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
  Loader(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options, ParameterList parameters,
         Model& model, WeightCache* cache)
      : checkpoint_(checkpoint),
        parameters_(std::move(parameters)),
        shared_(take_shared(parameters_.matrices)),
        backend_(backend),
        options_(options),
        model_(model),
        cache_(cache),
        arena_(backend, model.vectors),
        pool_(options.threads > 0 ? options.threads : usable_processors()) {}

  Result<> load() {
    TRY_VOID(check_quantization());
    TRY_VOID(check_fp8_activations());
    choose_formats();
    TRY_VOID(check_support(
        model_.spec,
        {.block_size = options_.block_size, .dtype = options_.cache_dtype.value_or(model_.activation)},
        backend_));
    if (!backend_.device->shares_host_memory()) choose_host_matrices();
    TRY_VOID(check_room());
    round_embed_scale();
    TRY_VOID(load_vectors());
    for (MatrixParameter* matrix : parameters_.matrices) {
      prefetch();
      TRY_VOID(load(*matrix));
    }
    for (const SharedMatrix& shared : shared_) shared.matrix->weight = shared.first->weight;
    for (NetworkPart* part : model_.network.parts()) part->loaded();
    model_.host_layers = host_layers(model_.network, on_host_);
    return {};
  }

 private:
  // Returns an error if quantisation is requested but no matrix is plain, because quantised matrices are not
  // quantised again.
  Result<> check_quantization() {
    if (options_.quantization == Encoding::plain) return {};
    for (const MatrixParameter* matrix : parameters_.matrices)
      for (const Slot& slot : matrix->parts)
        if (quantization_of(matrix->use) != Encoding::plain && checkpoint_.find(slot.name)->plain())
          return {};
    const StoredTensor& first = *checkpoint_.find(parameters_.matrices[0]->parts[0].name);
    return invalid("quantization",
                   "must be none, got {}, because every matrix is already quantised ({} is {})",
                   name(options_.quantization), first.name, first.format);
  }

  Result<> check_fp8_activations() const {
    if (!options_.fp8_activations || model_.network.layers.empty()) return {};
    if (!backend_.ops.has(Need::fp8_activations))
      return field_failure("fp8_activations", ErrorCode::unsupported,
                           "device {} does not round activations to fp8: leave --fp8-activations out",
                           backend_.name);
    for (const MatrixParameter* matrix : parameters_.matrices)
      for (const Slot& slot : matrix->parts)
        if (const StoredTensor& tensor = *checkpoint_.find(slot.name);
            tensor.packed && tensor.packed->activations != ActivationScheme::none)
          return {};
    return field_failure(
        "fp8_activations", ErrorCode::invalid_argument,
        "the checkpoint has no fp8 matrix whose quantization_config rounds activations to fp8: leave "
        "--fp8-activations out");
  }

  // Selects the format of all plain matrices: the requested format or, by default, the checkpoint's.
  void choose_formats() {
    plain_ = model_.network.plain;
    if (options_.dtype == ModelDType::bfloat16) plain_ = DType::bf16;
    if (options_.dtype == ModelDType::float16) plain_ = DType::f16;
    model_.activation = options_.dtype == ModelDType::float32 ? DType::f32 : backend_.ops.activation(plain_);
  }

  void choose_host_matrices() {
    on_host_ = choose_host_weights(
        model_.network, model_.spec.first_layer(), options_.host_weights,
        static_cast<double>(backend_.device->available_bytes()),
        [&](const MatrixParameter& matrix) { return bytes_with(options_.quantization, matrix); });
    const auto computed = [](const auto& matrix) { return matrix.second == HostUse::cpu_computes; };
    if (std::ranges::none_of(on_host_, computed)) return;
    const auto cpu = cuda_host_backend(*backend_.device, options_.threads);
    if (cpu && !options_.fp8_activations) {
      cpu_ = *cpu;
      return;
    }
    for (auto& [matrix, use] : on_host_) use = HostUse::gpu_reads;
    report_gpu_reads(cpu ? "the CPU does not round activations to fp8 (--fp8-activations)"
                         : cpu.error().message);
  }

  void report_gpu_reads(std::string_view reason) {
    if (!reported_)
      log_warning("n_cpu_moe: the CPU does not compute all experts, and the GPU reads them over PCIe: {}",
                  reason);
    reported_ = true;
  }

  // Returns an error if memory does not suffice. Without this check, the system might kill the process while
  // it loads.
  Result<> check_room() const {
    TRY_VOID(check_host_room());
    const auto available = static_cast<double>(backend_.device->available_bytes());  // 0: unknown
    const double wanted = bytes_with(options_.quantization);
    if (available == 0 || wanted <= available) return {};
    const double smallest = bytes_with(Encoding::int4);
    return failure(ErrorCode::resource_exhausted,
                   "the weights need {:.1f} GB, but only {:.1f} GB of memory are available{}", wanted * 1e-9,
                   available * 1e-9,
                   smallest < wanted
                       ? fmt::format("; with --quantization int4 they need {:.1f} GB", smallest * 1e-9)
                       : "");
  }

  // Returns an error if the host's memory does not suffice for the weights that stay there.
  Result<> check_host_room() const {
    if (on_host_.empty()) return {};
    double each = 0;
    for (const MatrixParameter* matrix : parameters_.matrices)
      if (on_host_.contains(matrix)) each += bytes_with(options_.quantization, *matrix);
    const double wanted = each * options_.host_weights.ranks;
    const auto available = static_cast<double>(host_memory().available);  // 0: unknown
    if (available == 0 || wanted <= available) return {};
    return failure(
        ErrorCode::resource_exhausted,
        "the weights in host memory need {:.1f} GB for {} ranks, but only {:.1f} GB are available: "
        "lower --n-cpu-moe or --cpu-offload-gb",
        wanted * 1e-9, options_.host_weights.ranks, available * 1e-9);
  }

  // Approximate size of all matrices on the device in bytes.
  double bytes_with(Encoding quantization) const {
    double bytes = 0;
    for (const MatrixParameter* matrix : parameters_.matrices)
      if (!on_host_.contains(matrix)) bytes += bytes_with(quantization, *matrix);
    return bytes;
  }

  // Approximate size of a matrix in bytes, without the scales of newly quantised matrices.
  double bytes_with(Encoding quantization, const MatrixParameter& matrix) const {
    double stored = 0, elements = 0;
    bool plain = true;
    for (const Slot& slot : matrix.parts) {
      const StoredTensor& tensor = *checkpoint_.find(slot.name);
      double numbers = 1;
      for (const std::int64_t extent : slot.shape) numbers *= static_cast<double>(extent);
      elements += numbers;
      stored += static_cast<double>(stored_bytes(tensor));
      plain = plain && tensor.plain();
    }
    const Encoding encoding = quantization_of(matrix.use, quantization);
    const double made = encoding == Encoding::int4   ? 0.5
                        : encoding == Encoding::int8 ? 1
                                                     : static_cast<double>(size_of(plain_));
    const double each = plain || matrix.use == MatrixUse::plain ? made : stored / elements;
    return each * static_cast<double>(matrix.elements());
  }

  // Rounds the scale of embeddings as transformers does: for 5376 columns, it is 73.5 (in bf16) instead of
  // 73.32.
  void round_embed_scale() {
    if (!model_.spec.embedding.scale_rounds || options_.dtype == ModelDType::float32) return;
    float& scale = model_.spec.embedding.scale;
    if (plain_ == DType::bf16) scale = to_f32(to_bf16(scale));
    if (plain_ == DType::f16) scale = to_f32(to_f16(scale));
    model_.network.ends->embed_scale = scale;
  }

  Result<> load_vectors() {
    std::int64_t floats = 0;
    for (const VectorParameter* vector : parameters_.vectors) floats += padded(vector->size);
    for (const RopeSpec& rope : model_.spec.ropes) {
      floats += padded(rope.rotary_dim / 2);
    }
    if (model_.spec.temperature.length > 0) floats += padded(model_.max_model_len);
    TRY(model_.vectors, backend_.device->allocate(static_cast<std::size_t>(floats) * sizeof(float)));
    model_.weight_bytes = model_.vectors.bytes();
    model_.checkpoint_bytes = checkpoint_.bytes();
    for (VectorParameter* vector : parameters_.vectors) {
      TRY(const std::vector<float> values, load_vector(checkpoint_, *vector, pool_));
      const std::int64_t row = vector->row;
      vector->value =
          row > 0 ? arena_.put(values, {vector->size / row, row}) : arena_.put(values, {vector->size});
    }
    load_ropes();
    if (model_.spec.temperature.length > 0)
      model_.temperatures =
          arena_.put(temperatures(model_.spec.temperature, model_.max_model_len), {model_.max_model_len});
    return {};
  }

  void load_ropes() {
    for (const RopeSpec& spec : model_.spec.ropes) {
      const std::vector<float> frequencies = rope_frequencies(spec, model_.max_model_len);
      model_.ropes.push_back({.each = arena_.put(frequencies, {std::ssize(frequencies)}),
                              .scale = static_cast<float>(spec.scaling.attention_factor),
                              .interleaved = spec.interleaved});
    }
  }

  static Encoding quantization_of(MatrixUse use, Encoding quantization) {
    if (use == MatrixUse::layer || quantization == Encoding::plain) return quantization;
    return use == MatrixUse::table ? Encoding::int8 : Encoding::plain;
  }
  Encoding quantization_of(MatrixUse use) const { return quantization_of(use, options_.quantization); }

  // Returns the number of bytes of the checkpoint that are counted as progress for this matrix.
  std::size_t bytes_of(const MatrixParameter& matrix) const {
    // 0, because another matrix uses the same tensor and counts its bytes
    if (matrix.ranges_transposed) return 0;
    std::size_t bytes = 0;
    for (const Slot& slot : matrix.parts)
      bytes += stored_bytes(*checkpoint_.find(slot.name)) /
               (matrix.slice < 0 ? 1 : static_cast<std::size_t>(slot.shape[0]));
    return bytes;
  }

  // Lets the system read the next matrices from the disk while earlier ones are converted. A rank reads only
  // parts of the tensors, so it does not prefetch them.
  void prefetch() {
    constexpr std::size_t kAheadBytes = std::size_t{128} << 20;
    if (model_.spec.shard.size > 1) return;
    for (; prefetched_ < parameters_.matrices.size() && prefetched_bytes_ < bytes_done_ + kAheadBytes;
         ++prefetched_) {
      const MatrixParameter& matrix = *parameters_.matrices[prefetched_];
      for (const Slot& slot : matrix.parts)
        if (matrix.slice <= 0) checkpoint_.prefetch(*checkpoint_.find(slot.name));  // once for all slices
      prefetched_bytes_ += bytes_of(matrix);
    }
  }

  Result<> load(MatrixParameter& matrix) {
    // GGUF files store routers in F32 even if their other plain matrices have a narrower format. With f32
    // activations, routers stay f32.
    const bool exact = matrix.use == MatrixUse::router && model_.activation == DType::f32;
    const MatrixFormats formats{.plain = exact ? DType::f32 : plain_,
                                .quantization = quantization_of(matrix.use),
                                .activation = model_.activation,
                                .late = options_.late,
                                .fp8_activations = options_.fp8_activations};
    TRY(WeightPtr weight, prepare(matrix, formats));
    CHECK(weight->activation() == model_.activation, "{} made of {}", name(weight->activation()),
          name(plain_));
    model_.weight_bytes += weight->bytes();
    if (on_host_.contains(&matrix)) model_.host_weight_bytes += weight->bytes();
    matrix.weight = std::move(weight);
    bytes_done_ += bytes_of(matrix);
    if (options_.progress) options_.progress(bytes_done_, checkpoint_.bytes());
    return {};
  }

  // Loads the matrix into the memory where it stays.
  Result<WeightPtr> prepare(const MatrixParameter& matrix, const MatrixFormats& formats) {
    const auto place = on_host_.find(&matrix);
    if (place == on_host_.end()) return prepare_on_device(matrix, formats);
    if (place->second == HostUse::cpu_computes) {
      Result<WeightPtr> weight = prepare_for_cpu(matrix, formats);
      if (weight || weight.error().code != ErrorCode::unsupported) return weight;
      TRY_VOID(let_gpu_read(matrix, weight.error()));
    }
    TRY(WeightPtr weight, prepare_on_device(matrix, formats));
    return cuda_move_to_host(*backend_.device, std::move(weight));
  }

  Result<WeightPtr> prepare_on_device(const MatrixParameter& matrix, const MatrixFormats& formats) {
    WeightPtr weight = cache_ != nullptr ? cache_->take(matrix) : nullptr;
    if (!weight) {
      TRY(weight, load_matrix(checkpoint_, matrix, formats, backend_, pool_));
    }
    if (cache_ != nullptr) cache_->add(matrix, *weight);
    return weight;
  }

  Result<WeightPtr> prepare_for_cpu(const MatrixParameter& matrix, MatrixFormats formats) {
    formats.activation = cpu_->ops.activation(model_.activation);
    formats.late = false;
    TRY(WeightPtr weight, load_matrix(checkpoint_, matrix, formats, *cpu_, pool_));
    return cuda_compute_on_host(std::move(weight), model_.activation);
  }

  // The CPU does not support the format of `matrix`, so the GPU reads all experts of this product. Returns
  // `error` if the CPU already has some of them.
  Result<> let_gpu_read(const MatrixParameter& matrix, const Error& error) {
    for (const ParameterList::ExpertProduct& product : parameters_.experts) {
      if (&product.matrices->front() != &matrix) continue;
      for (const MatrixParameter& expert : *product.matrices) on_host_[&expert] = HostUse::gpu_reads;
      report_gpu_reads(error.message);
      return {};
    }
    return failure(
        ErrorCode::unsupported,
        "{}; the CPU supports the format of other experts of the layer: use --cpu-offload-gb instead "
        "of --n-cpu-moe",
        error.message);
  }

  const Checkpoint& checkpoint_;
  ParameterList parameters_;  // without the matrices that are in `shared_`
  const std::vector<SharedMatrix> shared_;
  Backend& backend_;
  const LoadOptions& options_;
  Model& model_;
  WeightCache* const cache_;  // null: none
  VectorArena arena_;
  ThreadPool pool_;
  DType plain_ = DType::f32;
  HostMatrices on_host_;
  Backend* cpu_ = nullptr;  // computes with matrices in host memory
  bool reported_ = false;   // whether report_gpu_reads() has logged
  std::size_t bytes_done_ = 0;
  std::size_t prefetched_ = 0;  // index of the first matrix that is not prefetched
  std::size_t prefetched_bytes_ = 0;
};

}  // namespace

Result<> load_weights(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options,
                      Model& model, WeightCache* cache) {
  return Loader(checkpoint, backend, options, model.network.parameters(), model, cache).load();
}

Result<> load_weights(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options,
                      ParameterList parameters, Model& model) {
  return Loader(checkpoint, backend, options, std::move(parameters), model, nullptr).load();
}

}  // namespace octavo
