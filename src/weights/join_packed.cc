// Groups the tensors of a checkpoint into packed matrices, and checks their shapes.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "weights/packed_matrix.h"

namespace octavo {
namespace {

constexpr std::int64_t kWordBits = 32;
constexpr std::int64_t kDimensionMax = std::int64_t{1} << 31;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool is_float(const StoredTensor& t) {
  return t.dtype == DType::f32 || t.dtype == DType::f16 || t.dtype == DType::bf16;
}

// Returns whether the tensor has scales that are powers of two, stored as exponent plus 127.
bool are_exponents(const StoredTensor& t) { return t.format == "U8" || t.format == "F8_E8M0"; }

using Shape = std::vector<std::int64_t>;

Result<> check_shape(const StoredTensor& tensor, const Shape& shape) {
  if (tensor.shape == shape) return {};
  return failure(ErrorCode::corrupt, "tensor {} has shape [{}], but quantization_config requires [{}]",
                 tensor.name, fmt::join(tensor.shape, ", "), fmt::join(shape, ", "));
}

Result<> check_words(const StoredTensor& tensor, const Shape& shape) {
  if (tensor.format != "I32")
    return failure(ErrorCode::unsupported, "tensor {} is {}, but must be I32", tensor.name, tensor.format);
  return check_shape(tensor, shape);
}

// Replaces the tensors of each packed matrix by one tensor.
class Joiner {
 public:
  Joiner(std::vector<StoredTensor> tensors, const PackedFormat& format) : format_(format) {
    for (StoredTensor& t : tensors) {
      std::string name = t.name;
      all_.emplace(std::move(name), std::move(t));
    }
  }

  Result<std::vector<StoredTensor>> join() {
    for (const auto& [name, tensor] : all_) {
      if (is_runtime_scale(name)) used_.insert(name);
      if (const std::string_view suffix = codes_suffix(tensor); !suffix.empty())
        TRY_VOID(join_one(name.substr(0, name.size() - suffix.size()), tensor));
    }
    for (auto& [name, tensor] : all_)
      if (!used_.contains(name)) joined_.push_back(std::move(tensor));
    std::ranges::sort(joined_, {}, &StoredTensor::name);
    return std::move(joined_);
  }

 private:
  bool words() const { return format_.packing == Packing::gptq || format_.packing == Packing::awq; }

  // Returns the suffix of the tensor's name if the tensor has the codes of a packed matrix, and ""
  // otherwise.
  std::string_view codes_suffix(const StoredTensor& t) const {
    if (format_.packing == Packing::mxfp4) return t.name.ends_with("_blocks") ? "_blocks" : "";
    if (words()) return t.name.ends_with(".qweight") ? ".qweight" : "";
    if (t.name.ends_with(".weight_packed")) return ".weight_packed";
    const bool coded = t.format == "I8" || t.format == "F8_E4M3" ||
                       (t.format == "U8" && format_.packing == Packing::modelopt);
    return coded && t.name.ends_with(".weight") ? ".weight" : "";
  }

  static bool is_runtime_scale(std::string_view name) {
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{".input_scale", ".input_global_scale", ".input_zero_point",
                                                ".output_scale", ".k_scale", ".v_scale", ".q_scale",
                                                ".prob_scale", ".qscale_act"},
        [&](std::string_view suffix) { return name.ends_with(suffix); });
  }

  // Rejects tensors with a dimension of 0: they have no bytes, so their other dimensions could be arbitrarily
  // large.
  static Result<> check_extents(const StoredTensor& tensor) {
    for (const std::int64_t extent : tensor.shape)
      if (extent < 1 || extent > kDimensionMax)
        return failure(ErrorCode::corrupt, "tensor {} has shape [{}], but each dimension must be in [1, {}]",
                       tensor.name, fmt::join(tensor.shape, ", "), kDimensionMax);
    return {};
  }

  // Returns a tensor of the matrix. join() then omits it from the result. The name is empty if there is no
  // such tensor.
  Result<StoredTensor> take(const std::string& name) {
    const auto found = all_.find(name);
    if (found == all_.end()) return StoredTensor{};
    TRY_VOID(check_extents(found->second));
    used_.insert(name);
    return found->second;
  }

  Result<StoredTensor> need(const std::string& name) {
    TRY(StoredTensor tensor, take(name));
    if (tensor.name.empty()) return failure(ErrorCode::corrupt, "tensor {} is missing", name);
    return tensor;
  }

  Result<> join_one(const std::string& base, const StoredTensor& codes) {
    auto matrix = std::make_shared<PackedMatrix>();
    used_.insert(codes.name);
    matrix->codes = codes;
    if (format_.packing == Packing::mxfp4) return join_stack(base, std::move(matrix));
    StoredTensor joined{.name = base + ".weight", .bytes = codes.bytes};
    if (all_.contains(joined.name) && joined.name != codes.name)
      return failure(ErrorCode::corrupt,
                     "tensors {} and {} both exist: the checkpoint must have only one of them", joined.name,
                     codes.name);
    if (codes.shape.size() != 2)
      return failure(ErrorCode::corrupt, "tensor {} has {} dimensions, but a matrix has 2", codes.name,
                     codes.shape.size());
    TRY_VOID(check_extents(codes));
    if (words())
      TRY_VOID(words_of_columns(base, *matrix, joined));
    else if (codes.format == "U8")
      TRY_VOID(nvfp4_rows(base, *matrix, joined));
    else if (codes.name != joined.name)
      TRY_VOID(words_of_rows(base, *matrix, joined));
    else
      TRY_VOID(bytes_of_rows(base, *matrix, joined));
    const bool nvfp4 = !matrix->global_scale.name.empty();
    const bool exponents = format_.packing == Packing::fp8 && are_exponents(matrix->scales);
    if (!nvfp4 && !exponents && !is_float(matrix->scales))
      return failure(ErrorCode::unsupported, "tensor {} is {}, but scales must be F32, F16 or BF16{}",
                     matrix->scales.name, matrix->scales.format,
                     format_.packing == Packing::fp8 ? ", or F8_E8M0 or U8 for powers of two" : "");
    joined.format = nvfp4 ? "nvfp4" : name(joined.encoding);
    joined.packed = std::move(matrix);
    joined_.push_back(std::move(joined));
    return {};
  }

  // NVFP4 (NVIDIA, 2025): a byte has two e2m1 codes, the first one in the low half. Every 16 columns share an
  // e4m3 scale. The matrix has one more scale: compressed-tensors divides by it, ModelOpt multiplies by it.
  Result<> nvfp4_rows(const std::string& base, PackedMatrix& m, StoredTensor& joined) {
    constexpr std::int64_t kGroup = 16;
    const std::int64_t rows = m.codes.shape[0], cols = 2 * m.codes.shape[1];
    const bool modelopt = m.codes.name == joined.name;
    TRY(m.scales, need(base + ".weight_scale"));
    if (m.scales.format != "F8_E4M3")
      return failure(ErrorCode::unsupported, "tensor {} is {}, but scales of nvfp4 must be F8_E4M3",
                     m.scales.name, m.scales.format);
    if (cols % kGroup != 0)
      return failure(ErrorCode::corrupt, "tensor {}: nvfp4 needs groups of {} columns, got {}", m.codes.name,
                     kGroup, cols);
    TRY_VOID(check_shape(m.scales, {rows, cols / kGroup}));
    TRY(m.global_scale, need(base + (modelopt ? ".weight_scale_2" : ".weight_global_scale")));
    if (m.global_scale.format != "F32")
      return failure(ErrorCode::unsupported, "tensor {} is {}, but must be F32", m.global_scale.name,
                     m.global_scale.format);
    if (!m.global_scale.shape.empty()) TRY_VOID(check_shape(m.global_scale, {1}));
    m.global_divides = !modelopt;
    m.code_items = {.bits = 4, .other_stride = cols};
    m.scale_cols = kGroup;
    m.scale_row_stride = cols / kGroup;
    joined.shape = {rows, cols};
    joined.encoding = Encoding::mxfp4;
    return {};
  }

  // gpt-oss stores mxfp4 as codes [matrices, rows, groups, 16], two per byte with the first one in the low
  // half, and scales [matrices, rows, groups], each an exponent of two plus 127. Names have no ".weight".
  Result<> join_stack(const std::string& base, std::shared_ptr<PackedMatrix> m) {
    constexpr std::int64_t kGroup = 32, kGroupBytes = 16;
    const Shape& shape = m->codes.shape;
    TRY(m->scales, need(base + "_scales"));
    if (shape.size() != 4 || shape[3] != kGroupBytes)
      return failure(ErrorCode::corrupt,
                     "tensor {} has shape [{}], but mxfp4 needs [matrices, rows, groups, {}]", m->codes.name,
                     fmt::join(shape, ", "), kGroupBytes);
    TRY_VOID(check_shape(m->scales, {shape[0], shape[1], shape[2]}));
    for (const StoredTensor* tensor : {&m->codes, &m->scales})
      if (tensor->format != "U8")
        return failure(ErrorCode::unsupported, "tensor {} is {}, but must be U8", tensor->name,
                       tensor->format);
    const std::int64_t cols = shape[2] * kGroup;
    m->code_items = {.bits = 4, .other_stride = cols};
    m->scale_cols = kGroup;
    m->scale_row_stride = shape[2];
    StoredTensor joined{.name = base, .bytes = m->codes.bytes};
    joined.shape = {shape[0], shape[1], cols};
    joined.encoding = Encoding::mxfp4;
    joined.format = name(joined.encoding);
    joined.packed = std::move(m);
    joined_.push_back(std::move(joined));
    return {};
  }

  // A word of GPTQ has consecutive columns of the matrix, a word of AWQ has consecutive rows. Both formats
  // store the matrix as [columns, rows].
  Result<> words_of_columns(const std::string& base, PackedMatrix& m, StoredTensor& joined) {
    const std::int64_t together = kWordBits / format_.bits;
    const bool awq = format_.packing == Packing::awq;
    const std::int64_t rows = m.codes.shape[1] * (awq ? together : 1);
    const std::int64_t cols = m.codes.shape[0] * (awq ? 1 : together);
    m.scale_cols = format_.group == 0 ? cols : format_.group;
    const std::int64_t groups = ceil_div(cols, m.scale_cols);
    const std::int64_t zero_words = ceil_div(rows, together);
    TRY_VOID(check_words(m.codes, m.codes.shape));
    TRY(m.scales, need(base + ".scales"));
    TRY_VOID(check_shape(m.scales, {groups, rows}));
    TRY(m.zeros, need(base + ".qzeros"));
    TRY_VOID(check_words(m.zeros, {groups, zero_words}));
    TRY(m.group_index, group_index(base + ".g_idx", cols));
    m.code_items = {.bits = format_.bits,
                    .together = together,
                    .along_rows = awq,
                    .group_stride = awq ? together : rows * together,
                    .other_stride = awq ? rows : together,
                    .awq_order = awq};
    m.zero_items = {.bits = format_.bits,
                    .offset = format_.zero_offset,
                    .together = together,
                    .along_rows = true,
                    .group_stride = together,
                    .other_stride = zero_words * together,
                    .awq_order = awq};
    m.scale_group_stride = rows;
    joined.shape = {rows, cols};
    joined.encoding = format_.bits == 4 ? Encoding::int4 : Encoding::int8;
    return {};
  }

  // compressed-tensors, pack-quantized: a word of codes has consecutive columns, a word of zero points has
  // consecutive rows.
  Result<> words_of_rows(const std::string& base, PackedMatrix& m, StoredTensor& joined) {
    TRY(const StoredTensor shape, need(base + ".weight_shape"));
    TRY(joined.shape, read_shape(shape));
    const std::int64_t rows = joined.shape[0], cols = joined.shape[1];
    const int bits = m.codes.shape[1] == ceil_div(cols * 4, kWordBits) ? 4 : 8;
    const std::int64_t together = kWordBits / bits;
    const std::int64_t words = ceil_div(cols, together);
    TRY_VOID(check_words(m.codes, {rows, words}));
    m.code_items = {
        .bits = bits, .together = together, .group_stride = together, .other_stride = words * together};
    TRY_VOID(scales_of_rows(base, m, joined.shape, bits));
    TRY(m.group_index, group_index(base + ".weight_g_idx", cols));
    joined.encoding = bits == 4 ? Encoding::int4 : Encoding::int8;
    return {};
  }

  // DeepSeek-V4's experts are mxfp4 in tensors of type I8, while its other matrices are fp8.
  Result<> mxfp4_rows(const std::string& base, PackedMatrix& m, StoredTensor& joined) {
    constexpr std::int64_t kGroup = kMxfp4Blocks.columns;
    const std::int64_t rows = m.codes.shape[0], cols = 2 * m.codes.shape[1];
    TRY(m.scales, need(base + ".scale"));
    if (!are_exponents(m.scales))
      return failure(ErrorCode::unsupported, "tensor {} is {}, but scales of mxfp4 must be F8_E8M0 or U8",
                     m.scales.name, m.scales.format);
    if (cols % kGroup != 0)
      return failure(ErrorCode::corrupt, "tensor {}: mxfp4 needs groups of {} columns, got {}", m.codes.name,
                     kGroup, cols);
    TRY_VOID(check_shape(m.scales, {rows, cols / kGroup}));
    m.code_items = {.bits = 4, .other_stride = cols};
    m.scale_cols = kGroup;
    m.scale_row_stride = cols / kGroup;
    joined.shape = {rows, cols};
    joined.encoding = Encoding::mxfp4;
    return {};
  }

  // compressed-tensors (int-quantized, float-quantized) and fp8: one byte per number.
  Result<> bytes_of_rows(const std::string& base, PackedMatrix& m, StoredTensor& joined) {
    const bool integers = m.codes.format == "I8";
    if (integers && format_.packing == Packing::fp8) return mxfp4_rows(base, m, joined);
    joined.shape = m.codes.shape;
    joined.encoding = integers ? Encoding::int8 : Encoding::fp8;
    m.code_items = {.is_signed = integers, .offset = integers ? 128 : 0, .other_stride = joined.shape[1]};
    if (!integers) TRY_VOID(read_activations(base, m));
    return scales_of_rows(base, m, joined.shape, 8);
  }

  Result<> read_activations(const std::string& base, PackedMatrix& m) {
    m.activations = format_.activations;
    m.activation_cols = format_.block_cols;
    for (const char* suffix : {".input_scale", ".qscale_act"})
      if (m.input_scale.name.empty()) {
        TRY(m.input_scale, take(base + suffix));
      }
    return {};
  }

  // Reads the scales of a matrix that is stored as [rows, columns]. The matrix has one scale, or one per
  // row, group or block.
  Result<> scales_of_rows(const std::string& base, PackedMatrix& m, const Shape& shape, int bits) {
    const std::int64_t rows = shape[0], cols = shape[1];
    for (const char* suffix : {".weight_scale_inv", ".qscale_weight", ".weight_scale", ".scale"})
      if (m.scales.name.empty()) {
        TRY(m.scales, take(base + suffix));
      }
    if (m.scales.name.empty()) return failure(ErrorCode::corrupt, "tensor {}.weight_scale is missing", base);
    const Shape& grid = m.scales.shape;
    const std::int64_t count = std::accumulate(grid.begin(), grid.end(), std::int64_t{1}, std::multiplies());
    const std::int64_t groups = grid.size() == 2 ? grid[1] : 1;
    if (format_.block_rows > 0 && codes_are_fp8(m) && count > 1) {
      m.scale_rows = format_.block_rows;
      m.scale_cols = format_.block_cols;
      const std::int64_t chunks =
          format_.qkv_chunks > 0 && base.ends_with("qkv_proj") ? format_.qkv_chunks : 1;
      const std::int64_t in_chunks = chunks * ceil_div(ceil_div(rows, chunks), m.scale_rows);
      // Some files have scales for the matrix as a whole.
      const bool whole = grid[0] == ceil_div(rows, m.scale_rows);
      if (!whole && rows % chunks == 0) m.chunk_rows = rows / chunks;
      TRY_VOID(check_shape(m.scales, {whole ? grid[0] : in_chunks, ceil_div(cols, m.scale_cols)}));
    } else if (count == 1) {
      m.scale_rows = rows;
      m.scale_cols = cols;
    } else {
      if (grid.size() > 2 || grid[0] != rows || cols % groups != 0)
        return failure(ErrorCode::corrupt,
                       "tensor {} has shape [{}], but the scales of a [{}, {}] matrix must have [1], [{}, 1] "
                       "or [{}, a divisor of {}]",
                       m.scales.name, fmt::join(grid, ", "), rows, cols, rows, rows, cols);
      m.scale_cols = cols / groups;
    }
    m.scale_row_stride = groups;
    TRY(m.zeros, take(base + ".weight_zero_point"));
    if (m.zeros.name.empty()) return {};
    if (codes_are_fp8(m))
      return failure(ErrorCode::unsupported, "tensor {}: zero points are not supported with fp8",
                     m.zeros.name);
    if (m.zeros.format == "I8") {  // zero points are not packed: one byte per scale
      m.zero_items = {.is_signed = true, .offset = 1 << (bits - 1), .other_stride = groups};
      return check_shape(m.zeros, grid);
    }
    const std::int64_t together = kWordBits / bits;
    m.zero_items = {.bits = bits,
                    .together = together,
                    .along_rows = true,
                    .group_stride = groups * together,
                    .other_stride = together};
    return check_words(m.zeros, {ceil_div(rows, together), groups});
  }

  static bool codes_are_fp8(const PackedMatrix& m) { return m.codes.format == "F8_E4M3"; }

  Result<StoredTensor> group_index(const std::string& name, std::int64_t cols) {
    TRY(StoredTensor tensor, take(name));
    if (!tensor.name.empty()) TRY_VOID(check_words(tensor, {cols}));
    return tensor;
  }

  static Result<Shape> read_shape(const StoredTensor& tensor) {
    TRY_VOID(check_shape(tensor, {2}));
    if (tensor.format != "I64" && tensor.format != "I32")
      return failure(ErrorCode::unsupported, "tensor {} is {}, but must be I64 or I32", tensor.name,
                     tensor.format);
    Shape shape(2);
    for (std::size_t i = 0; i < 2; ++i) {
      std::int32_t narrow = 0;
      if (tensor.format == "I64")
        std::memcpy(&shape[i], tensor.bytes.data() + i * 8, 8);
      else
        std::memcpy(&narrow, tensor.bytes.data() + i * 4, 4);
      shape[i] += narrow;
      if (shape[i] < 1 || shape[i] > kDimensionMax)
        return failure(ErrorCode::corrupt, "tensor {} has shape [{}], but each dimension must be in [1, {}]",
                       tensor.name, shape[i], kDimensionMax);
    }
    return shape;
  }

  const PackedFormat& format_;
  std::map<std::string, StoredTensor, std::less<>> all_;
  std::set<std::string, std::less<>> used_;
  std::vector<StoredTensor> joined_;
};

}  // namespace

Result<std::vector<StoredTensor>> join_packed(std::vector<StoredTensor> tensors, const PackedFormat& format) {
  if (format.packing == Packing::none) return tensors;
  return Joiner(std::move(tensors), format).join();
}

std::size_t stored_bytes(const StoredTensor& tensor) {
  if (!tensor.packed) return tensor.bytes.size();
  const PackedMatrix& m = *tensor.packed;
  if (m.code_items.blocks.parts > 0) return tensor.bytes.size() + m.global_scale.bytes.size();
  return m.codes.bytes.size() + m.scales.bytes.size() + m.zeros.bytes.size() + m.group_index.bytes.size() +
         m.global_scale.bytes.size();
}

}  // namespace octavo
