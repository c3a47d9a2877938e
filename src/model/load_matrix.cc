#include "model/load_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/dequantize.h"
#include "weights/packed_matrix.h"
#include "weights/quantize.h"

namespace octavo {
namespace {

// A part of a matrix. `part` points into the checkpoint, or into another member of this struct.
struct LoadedPart {
  MatrixPart part;
  std::vector<std::byte> memory = {};
  std::vector<std::byte> cut = {};  // copied columns of a rank, or rows in another order
  QuantizedMatrix quantized = {};
};

void dequantize_part(LoadedPart& loaded, DType type, ThreadPool& pool) {
  const std::int64_t rows = loaded.part.rows(), cols = loaded.part.cols();
  loaded.memory.resize(static_cast<std::size_t>(rows * cols) * size_of(type));
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> numbers(static_cast<std::size_t>(cols));
    for (std::int64_t row = begin; row < end; ++row) {
      dequantize(loaded.part, row, numbers.data());
      for (std::int64_t k = 0; k < cols; ++k)
        put_number(loaded.memory.data(), type, static_cast<std::size_t>(row * cols + k),
                   numbers[static_cast<std::size_t>(k)]);
    }
  });
  loaded.part = {.values = View::of(loaded.memory.data(), type, {rows, cols})};
  loaded.quantized = {};
}

void transpose(View& matrix) {
  std::swap(matrix.shape[0], matrix.shape[1]);
  std::swap(matrix.stride[0], matrix.stride[1]);
}

// Returns whether the kernels can multiply this quantised matrix directly.
bool is_multiplied(const MatrixPart& part) {
  const std::int64_t groups = part.scales.size(1);
  const bool halves = part.encoding == Encoding::mxfp4 && part.cols() % kColumnsMultiple == 0 &&
                      part.cols() / groups * 2 == kColumnsMultiple;
  return groups == 1 || part.cols() / groups % kColumnsMultiple == 0 || halves;
}

// Returns the factors of the rows of tensor number `part`; empty: the rows are not multiplied.
std::vector<float> row_factors(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                               std::size_t part) {
  std::vector<float> factors;
  if (parameter.scales.empty() || parameter.scales[part].slot.name.empty()) return factors;
  const RowScale& scale = parameter.scales[part];
  const StoredTensor& tensor = *checkpoint.find(scale.slot.name);
  for (std::int64_t i = 0; i < scale.slot.shape[0]; ++i) {
    const float number = number_at(tensor, i);
    factors.push_back(scale.change ? scale.change(number) : number);
  }
  return factors;
}

// Converts a plain matrix to `type` and multiplies each row by its factor.
StoredTensor scaled(const StoredTensor& tensor, std::span<const float> factors, DType type,
                    std::vector<std::byte>& memory, ThreadPool& pool) {
  const std::int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  memory.resize(static_cast<std::size_t>(rows * cols) * size_of(type));
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * cols; i < end * cols; ++i)
      put_number(memory.data(), type, static_cast<std::size_t>(i),
                 number_at(tensor, i) * factors[static_cast<std::size_t>(i / cols)]);
  });
  StoredTensor out = tensor;
  out.dtype = type;
  out.bytes = memory;
  return out;
}

// Transposes each row of a plain matrix from [channels, n] to [n, channels].
Result<StoredTensor> channels_last(const StoredTensor& tensor, std::int64_t channels,
                                   std::vector<std::byte>& memory) {
  if (!tensor.plain())
    return failure(ErrorCode::unsupported, "tensor {} is {}, but must be F32, F16 or BF16", tensor.name,
                   tensor.format);
  const std::size_t element = size_of(*tensor.dtype);
  const auto rows = static_cast<std::size_t>(tensor.shape[0]), all = static_cast<std::size_t>(channels);
  const std::size_t positions = static_cast<std::size_t>(tensor.shape[1]) / all;
  memory.resize(tensor.bytes.size());
  std::byte* to = memory.data();
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t position = 0; position < positions; ++position)
      for (std::size_t channel = 0; channel < all; ++channel, to += element)
        std::memcpy(to, tensor.bytes.data() + ((row * all + channel) * positions + position) * element,
                    element);
  StoredTensor out = tensor;
  out.bytes = memory;
  return out;
}

// Quantises a plain part if quantisation is requested; otherwise returns it unchanged.
Result<LoadedPart> quantized(LoadedPart loaded, std::string_view name, const MatrixFormats& formats,
                             ThreadPool& pool) {
  if (formats.quantization == Encoding::plain) return loaded;
  auto made = quantize(loaded.part.values, formats.quantization, pool);
  if (!made) made.error().message = fmt::format("tensor {}: {}", name, made.error().message);
  TRY(loaded.quantized, std::move(made));
  loaded.part = loaded.quantized.part;
  loaded.memory = {};
  return loaded;
}

Result<LoadedPart> load_part(const StoredTensor& stored, const MatrixFormats& formats, bool transposed,
                             std::span<const float> factors, ThreadPool& pool) {
  LoadedPart loaded;
  if (!stored.plain()) {
    if (!factors.empty() && !stored.packed)
      return failure(ErrorCode::unsupported, "tensor {} is {}, whose rows cannot be scaled by a vector",
                     stored.name, stored.format);
    if (transposed)
      return failure(ErrorCode::unsupported, "tensor {} is {} and stored transposed, which is not supported",
                     stored.name, stored.format);
    if (stored.packed) {
      TRY(loaded.quantized, unpack(stored, pool));
      std::vector<float>& scales = loaded.quantized.scales;
      const std::int64_t groups = std::ssize(scales) / stored.shape[0];
      for (std::int64_t i = 0; !factors.empty() && i < std::ssize(scales); ++i)
        scales[static_cast<std::size_t>(i)] *= factors[static_cast<std::size_t>(i / groups)];
      // Valid although the QuantizedMatrix was moved: moving a vector does not move its elements.
      loaded.part = loaded.quantized.part;
      if (is_multiplied(loaded.part)) return loaded;
      dequantize_part(loaded, formats.plain, pool);
      return quantized(std::move(loaded), stored.name, formats, pool);
    }
    TRY_VOID(check_finite(stored, pool));
    loaded.part = matrix_of(stored);
    return loaded;
  }
  // With f32 activations, products with the factors are not rounded to the checkpoint's format.
  const StoredTensor tensor = factors.empty()
                                  ? in_format(stored, formats.plain, loaded.memory, pool)
                                  : scaled(stored, factors, formats.activation, loaded.memory, pool);
  TRY_VOID(check_finite(tensor, pool));
  loaded.part = matrix_of(tensor);
  if (transposed) transpose(loaded.part.values);
  return quantized(std::move(loaded), stored.name, formats, pool);
}

// Makes a part in which all numbers are 0, in the same format as the matrix's other parts.
Result<LoadedPart> zeros(std::int64_t rows, std::int64_t cols, const MatrixFormats& formats, ThreadPool& pool) {
  LoadedPart made;
  made.memory.resize(static_cast<std::size_t>(rows * cols) * size_of(formats.plain));
  made.part = {.values = View::of(made.memory.data(), formats.plain, {rows, cols})};
  return quantized(std::move(made), "", formats, pool);
}

// Pads each group of `stored` columns of a plain part with zeros to `count` columns.
void widen_runs(LoadedPart& loaded, std::int64_t stored, std::int64_t count, ThreadPool& pool) {
  const View from = loaded.part.values;
  const auto element = static_cast<std::int64_t>(size_of(from.dtype));
  const std::int64_t rows = from.size(0), runs = from.size(1) / stored;
  std::vector<std::byte> memory(static_cast<std::size_t>(rows * runs * count * element));
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * runs; i < end * runs; ++i)
      std::memcpy(memory.data() + i * count * element,
                  static_cast<const std::byte*>(from.rows(i / runs, 1).data) + i % runs * stored * element,
                  static_cast<std::size_t>(stored * element));
  });
  loaded.memory = std::move(memory);
  loaded.part = {.values = View::of(loaded.memory.data(), from.dtype, {rows, runs * count})};
}

// Returns whether the columns [begin, begin + count) consist of complete blocks and groups.
bool has_columns(const MatrixPart& part, std::int64_t begin, std::int64_t count) {
  const bool plain = part.encoding == Encoding::plain;
  const std::int64_t block = plain ? 1 : block_shape(part.encoding).elements;
  const std::int64_t group = part.scales && part.scales.size(1) > 1
                                 ? std::max(part.cols() / part.scales.size(1), kColumnsMultiple)
                                 : 1;
  return begin % block == 0 && count % block == 0 && begin % group == 0 && count % group == 0;
}

MatrixPart column_range(const MatrixPart& part, std::int64_t begin, std::int64_t count) {
  const auto of = [&](const View& view) {
    if (!view || view.size(1) == 1) return view;  // one scale for all columns
    return view.columns(begin * view.size(1) / part.cols(), count * view.size(1) / part.cols());
  };
  return {part.encoding, of(part.values), of(part.scales), of(part.zeros)};
}

// Returns whether a rank's part of a matrix is contiguous in the checkpoint's tensors.
bool stands_together(const MatrixParameter& parameter) {
  return !parameter.transposed && parameter.scales.empty() &&
         std::ranges::all_of(parameter.order, [](const RowRange& range) { return range.step == 1; });
}

// Loads a rank's part of plain tensors, and reads no other bytes of the checkpoint.
Result<std::vector<LoadedPart>> load_shard(std::span<const StoredTensor> tensors,
                                           const MatrixParameter& parameter, const MatrixFormats& formats,
                                           ThreadPool& pool) {
  std::vector<LoadedPart> loaded;
  for (RowRange range : parameter.order) {
    if (range.begin < 0) {
      TRY(loaded.emplace_back(), zeros(range.count, parameter.cols, formats, pool));
      continue;
    }
    auto tensor = tensors.begin();
    for (; range.begin >= tensor->shape[0]; ++tensor) range.begin -= tensor->shape[0];
    std::vector<std::byte> cut;
    const StoredTensor part =
        part_of(*tensor, range.begin, range.count, parameter.first_col, parameter.cols, cut);
    TRY(LoadedPart one, load_part(part, formats, false, {}, pool));
    one.cut = std::move(cut);
    loaded.push_back(std::move(one));
  }
  return loaded;
}

// Returns the parts in the order `order`. `gap` is a part in which all numbers are 0. It has at least the
// number of rows of the longest range of zeros in `order`.
std::vector<MatrixPart> parts_of(std::span<const LoadedPart> loaded, std::span<const RowRange> order,
                                 const LoadedPart& gap) {
  std::vector<MatrixPart> parts;
  for (RowRange range : order) {
    if (range.begin < 0) {
      parts.push_back(gap.part.row_range(0, range.count, 1));
      continue;
    }
    auto one = loaded.begin();
    for (; range.begin >= one->part.rows(); ++one) range.begin -= one->part.rows();
    parts.push_back(one->part.row_range(range.begin, range.count, range.step));
  }
  if (order.empty())
    for (const LoadedPart& one : loaded) parts.push_back(one.part);
  return parts;
}

// Returns the first row minus the second row. Each part has one row.
MatrixPart difference_of(std::span<const MatrixPart> rows, DType type, std::vector<std::byte>& memory) {
  const auto cols = static_cast<std::size_t>(rows[0].cols());
  std::vector<float> first(cols), second(cols);
  dequantize(rows[0], 0, first.data());
  dequantize(rows[1], 0, second.data());
  memory.resize(cols * size_of(type));
  for (std::size_t k = 0; k < cols; ++k) put_number(memory.data(), type, k, first[k] - second[k]);
  return {.values = View::of(memory.data(), type, {1, rows[0].cols()})};
}

// Returns the tensors of a matrix, each with two dimensions.
std::vector<StoredTensor> tensors_of(const Checkpoint& checkpoint, const MatrixParameter& parameter) {
  std::vector<StoredTensor> tensors;
  for (const Slot& slot : parameter.parts) {
    StoredTensor tensor = *checkpoint.find(slot.name);
    if (parameter.slices > 0) tensor.shape = {parameter.slices, tensor.shape[0] / parameter.slices, tensor.shape[1]};
    tensors.push_back(parameter.slice < 0 ? tensor : slice_of(tensor, parameter.slice));
    std::vector<std::int64_t>& shape = tensors.back().shape;
    if (shape.size() > 2) {  // A convolution with disjoint windows, or a stack of matrices.
      std::int64_t rows = 1;
      for (const std::int64_t size : shape) rows *= size;
      // In both cases, a row has parameter.cols elements, unless a rank loads only some columns of a stack.
      const std::int64_t cols = parameter.sharded ? shape.back() : parameter.cols;
      shape = {rows / cols, cols};
    } else if (shape.size() == 1) {
      shape.insert(shape.begin(), 1);  // A table with one row.
    }
  }
  return tensors;
}

struct MatrixLayout {
  MatrixFormats formats;
  bool all_plain;
  bool widens;            // groups of columns are padded with zeros
  bool own_bytes;         // a rank reads only its part of the tensors
  std::int64_t gap_rows;  // length of the longest range of rows that are all 0

  bool pads() const { return gap_rows > 0 || widens; }
};

MatrixLayout matrix_layout_of(std::span<const StoredTensor> tensors, const MatrixParameter& parameter,
                              MatrixFormats formats) {
  const bool all_plain = std::ranges::all_of(tensors, &StoredTensor::plain), widens = parameter.run_cols > 0;
  std::int64_t gap_rows = 0;
  for (const RowRange& range : parameter.order)
    if (range.begin < 0) gap_rows = std::max(gap_rows, range.count);
  if (!all_plain) {
    formats.plain = formats.activation;
    // Rows and columns of zeros are plain, so all rows must be plain.
    if (gap_rows > 0 || widens) formats.quantization = Encoding::plain;
  }
  return {.formats = formats,
          .all_plain = all_plain,
          .widens = widens,
          .own_bytes = parameter.sharded && all_plain && !widens && stands_together(parameter),
          .gap_rows = gap_rows};
}

Result<LoadedPart> load_whole(StoredTensor tensor, const MatrixParameter& parameter,
                              const MatrixLayout& layout, std::span<const float> factors, ThreadPool& pool) {
  std::vector<std::byte> transposed_values;
  if (parameter.channels > 0) {
    TRY(tensor, channels_last(tensor, parameter.channels, transposed_values));
  }
  MatrixFormats stored = layout.formats;
  if (layout.widens) stored.quantization = Encoding::plain;
  TRY(LoadedPart part, load_part(tensor, stored, parameter.transposed, factors, pool));
  if (parameter.channels > 0) part.cut = std::move(transposed_values);
  const DType plain = layout.formats.plain;
  if (layout.pads() && !layout.all_plain && part.part.encoding != Encoding::plain)
    dequantize_part(part, plain, pool);
  if (layout.widens) {
    widen_runs(part, parameter.stored_run_cols, parameter.run_cols, pool);
    TRY(part, quantized(std::move(part), tensor.name, layout.formats, pool));
  }
  if (parameter.sharded && !has_columns(part.part, parameter.first_col, parameter.cols))
    dequantize_part(part, plain, pool);
  return part;
}

// Makes all parts quantised or all parts plain, because a product cannot have both.
void make_alike(std::span<LoadedPart> loaded, MatrixUse use, DType plain, ThreadPool& pool) {
  const auto is_plain = [](const LoadedPart& one) { return one.part.encoding == Encoding::plain; };
  if (use != MatrixUse::plain && std::ranges::none_of(loaded, is_plain)) return;
  for (LoadedPart& one : loaded)
    if (!is_plain(one)) dequantize_part(one, plain, pool);
}

// Returns the file that contains all parts. Returns null if there are several files, if a part is in memory,
// or if a part is not in blocks.
std::shared_ptr<const MappedFile> file_of(std::span<const MatrixPart> parts, const Checkpoint& checkpoint) {
  std::shared_ptr<const MappedFile> file;
  for (const MatrixPart& part : parts) {
    const auto own = block_shape(part.encoding).elements > 1
                         ? checkpoint.file_with(static_cast<const std::byte*>(part.values.data))
                         : nullptr;
    if (own == nullptr || (file != nullptr && own != file)) return nullptr;
    file = own;
  }
  return file;
}

// Returns the checkpoint's scale of the activations of a matrix; 0: the file has none.
Result<float> input_scale(const StoredTensor& scale) {
  if (scale.name.empty()) return 0;
  const bool one = scale.shape.empty() || scale.shape == std::vector<std::int64_t>{1};
  if (!one || !scale.usable())
    return failure(
        ErrorCode::unsupported,
        "tensor {} is {} of shape [{}], but with --fp8-activations it must be one F32, F16 or BF16 number",
        scale.name, scale.format, fmt::join(scale.shape, ", "));
  const float number = number_at(scale, 0);
  if (!(number > 0 && std::isfinite(number)))
    return failure(ErrorCode::corrupt, "tensor {} is {}, but a scale must be above 0 and finite", scale.name,
                   number);
  return number;
}

// Returns how products round x: as the checkpoint requires, unless the matrix is not in fp8, or the scales of
// x or of the matrix change within kFp8Columns columns.
Result<Fp8Rounding> rounding_of(std::span<const MatrixPart> parts, std::span<const StoredTensor> tensors) {
  const std::int64_t cols = parts[0].cols();
  const auto fits = [&](std::int64_t group) {
    return group == cols || (group > 0 && group % kFp8Columns == 0);
  };
  for (const MatrixPart& part : parts)
    if (part.encoding != Encoding::fp8 || !fits(cols / part.scales.size(1))) return Fp8Rounding();
  Fp8Rounding rounding{.group = cols};
  for (const StoredTensor& tensor : tensors) {
    const PackedMatrix& packed = *tensor.packed;
    if (packed.activations == ActivationScheme::none) return Fp8Rounding();
    if (packed.activations == ActivationScheme::block) rounding.group = packed.activation_cols;
    if (packed.activations != ActivationScheme::stored) continue;
    // Fused matrices have the same x, so the largest of their scales is used. If all are missing, each row of
    // x gets a scale.
    TRY(const float scale, input_scale(packed.input_scale));
    rounding.scale = std::max(rounding.scale, scale);
  }
  return fits(rounding.group) ? rounding : Fp8Rounding();
}

}  // namespace

Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                              MatrixFormats wanted, Backend& backend, ThreadPool& pool) {
  const std::vector<StoredTensor> tensors = tensors_of(checkpoint, parameter);
  // Rows with factors get the format of activations; all parts of a fused matrix need the same format.
  if (!parameter.scales.empty()) wanted.plain = wanted.activation;
  const MatrixLayout layout = matrix_layout_of(tensors, parameter, wanted);
  const MatrixFormats& formats = layout.formats;
  std::vector<LoadedPart> loaded;
  if (layout.own_bytes) {
    TRY(loaded, load_shard(tensors, parameter, formats, pool));
  } else {
    for (std::size_t part = 0; part < tensors.size(); ++part) {
      TRY(loaded.emplace_back(),
          load_whole(tensors[part], parameter, layout, row_factors(checkpoint, parameter, part), pool));
    }
  }
  make_alike(loaded, parameter.use, formats.plain, pool);

  LoadedPart gap;
  if (layout.gap_rows > 0 && !layout.own_bytes) {
    TRY(gap, zeros(layout.gap_rows, loaded[0].part.cols(), formats, pool));
  }
  std::vector<MatrixPart> parts =
      parts_of(loaded, layout.own_bytes ? std::span<const RowRange>() : std::span(parameter.order), gap);
  if (parameter.sharded && !layout.own_bytes)
    for (MatrixPart& part : parts) part = column_range(part, parameter.first_col, parameter.cols);
  if (parameter.ranges_transposed)
    for (MatrixPart& part : parts) transpose(part.values);
  std::vector<std::byte> memory;
  if (parameter.difference) parts = {difference_of(parts, formats.activation, memory)};
  Fp8Rounding rounding;
  if (formats.fp8_activations && parameter.use == MatrixUse::layer) {
    TRY(rounding, rounding_of(parts, tensors));
  }
  TRY(WeightPtr weight,
      backend.ops.prepare(*backend.device, {.parts = parts,
                                            .activation = formats.activation,
                                            .file = formats.late ? file_of(parts, checkpoint) : nullptr,
                                            .rounding = rounding}));
  for (const StoredTensor& tensor : tensors) checkpoint.release(tensor);
  return weight;
}

DType plain_format(Network& network, const Checkpoint& checkpoint) {
  std::vector<MatrixParameter*> matrices = network.parameters().matrices;
  std::ranges::stable_partition(matrices, [](auto* matrix) { return matrix->use == MatrixUse::layer; });
  for (const MatrixParameter* matrix : matrices)
    for (const Slot& slot : matrix->parts)
      if (const StoredTensor& tensor = *checkpoint.find(slot.name);
          tensor.plain() && matrix->use != MatrixUse::router)
        return *tensor.dtype;
  const std::vector<Slot>& norm = network.ends->final_norm.weight.parts;
  const std::vector<Slot>& table = network.ends->embedding.parts;
  const bool packed = table.empty() || checkpoint.find(table[0].name)->packed != nullptr;
  return packed && !norm.empty() ? *checkpoint.find(norm[0].name)->dtype : DType::bf16;
}

}  // namespace octavo
