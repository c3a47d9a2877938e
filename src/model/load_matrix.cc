#include "model/load_matrix.h"

#include <algorithm>
#include <cstring>

#include "tensor/dequantize.h"
#include "weights/quantize.h"

namespace octavo {
namespace {

// A part of a matrix, and its numbers where they are not the checkpoint's own.
struct LoadedPart {
  MatrixPart part;
  std::vector<std::byte> memory = {};
  QuantizedMatrix quantized = {};
};

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

// The plain tensor in this format: itself, or, when its format or its alignment does not fit, a copy in
// `memory`.
StoredTensor in_format(const StoredTensor& tensor, DType type, std::vector<std::byte>& memory,
                       ThreadPool& pool) {
  constexpr std::int64_t kPiece = 1 << 16;
  const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % size_of(type) == 0;
  if (tensor.dtype == type && aligned) return tensor;
  const std::size_t count = tensor.bytes.size() / size_of(*tensor.dtype);
  memory.resize(count * size_of(type));
  pool.for_ranges(static_cast<std::int64_t>(count), kPiece, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      put(memory.data(), type, i, element(tensor.bytes.data(), *tensor.dtype, i));
  });
  StoredTensor converted = tensor;
  converted.dtype = type;
  converted.bytes = memory;
  return converted;
}

// A part in blocks becomes plain.
void take_out_of_blocks(LoadedPart& loaded, DType type, ThreadPool& pool) {
  const std::int64_t rows = loaded.part.rows(), cols = loaded.part.cols();
  loaded.memory.resize(static_cast<std::size_t>(rows * cols) * size_of(type));
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> numbers(static_cast<std::size_t>(cols));
    for (std::int64_t row = begin; row < end; ++row) {
      dequantize(loaded.part, row, numbers.data());
      for (std::int64_t k = 0; k < cols; ++k)
        put(loaded.memory.data(), type, static_cast<std::size_t>(row * cols + k),
            numbers[static_cast<std::size_t>(k)]);
    }
  });
  loaded.part = {.values = View::of(loaded.memory.data(), type, {rows, cols})};
}

Result<LoadedPart> load_part(const StoredTensor& stored, const MatrixFormats& formats, bool transposed,
                             ThreadPool& pool) {
  LoadedPart loaded;
  if (!stored.plain()) {
    if (transposed)
      return failure(ErrorCode::unsupported, "tensor {} is {} and stored transposed", stored.name,
                     stored.format);
    if (formats.quantization != Encoding::plain)
      return invalid("quantization", "tensor {} is {}: it cannot be quantised to {} again", stored.name,
                     stored.format, name(formats.quantization));
    TRY_VOID(check_finite(stored, pool));
    loaded.part = matrix_of(stored);
    return loaded;
  }
  const StoredTensor tensor = in_format(stored, formats.plain, loaded.memory, pool);
  TRY_VOID(check_finite(tensor, pool));
  loaded.part = matrix_of(tensor);
  if (transposed) {
    View& view = loaded.part.values;
    std::swap(view.shape[0], view.shape[1]);
    std::swap(view.stride[0], view.stride[1]);
  }
  if (formats.quantization != Encoding::plain) {
    TRY(loaded.quantized, quantize(loaded.part.values, formats.quantization, pool));
    loaded.part = loaded.quantized.part;  // the codes stay where they are when their vector moves
    loaded.memory = {};
  }
  return loaded;
}

}  // namespace

Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                              const MatrixFormats& wanted, Backend& backend, ThreadPool& pool) {
  std::vector<const StoredTensor*> tensors;
  for (const Slot& slot : parameter.parts) tensors.push_back(checkpoint.find(slot.name));
  const bool any_plain = std::ranges::any_of(tensors, &StoredTensor::plain);
  const bool mixed = any_plain && !std::ranges::all_of(tensors, &StoredTensor::plain);
  MatrixFormats formats = wanted;
  if (mixed) formats.plain = formats.activation;

  std::vector<LoadedPart> loaded;
  for (const StoredTensor* tensor : tensors) {
    TRY(LoadedPart part, load_part(*tensor, formats, parameter.transposed, pool));
    if (mixed && !tensor->plain()) take_out_of_blocks(part, formats.plain, pool);
    loaded.push_back(std::move(part));
  }
  std::vector<MatrixPart> parts;
  for (const RowRange& range : parameter.order)
    parts.push_back(loaded[0].part.row_range(range.begin, range.count));
  if (parameter.order.empty())
    for (const LoadedPart& one : loaded) parts.push_back(one.part);
  TRY(WeightPtr weight,
      backend.ops.prepare(*backend.device, {.parts = parts, .activation = formats.activation}));
  for (const StoredTensor* tensor : tensors) checkpoint.release(*tensor);
  return weight;
}

DType plain_format(const Parameters& parameters, const Checkpoint& checkpoint) {
  std::vector<const MatrixParameter*> matrices;
  for (const LayerParameters& layer : parameters.layers)
    for (const LinearParameter* linear : {&layer.qkv, &layer.out, &layer.up, &layer.down})
      matrices.push_back(&linear->weight);
  for (const MatrixParameter* table : {&parameters.embedding, &parameters.positions, &parameters.lm_head})
    matrices.push_back(table);
  for (const MatrixParameter* matrix : matrices)
    for (const Slot& slot : matrix->parts)
      if (const StoredTensor& tensor = *checkpoint.find(slot.name); tensor.plain()) return *tensor.dtype;
  return DType::bf16;
}

float number_at(const StoredTensor& tensor, std::int64_t i) {
  return element(tensor.bytes.data(), *tensor.dtype, static_cast<std::size_t>(i));
}

}  // namespace octavo
