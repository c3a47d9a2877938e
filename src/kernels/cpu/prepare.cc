// Converts weights of a checkpoint to panels.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo::cpu {
namespace {

// Copies the rows [first, last) of the matrix to the panel that contains them. T is as large as an element.
template <class T, std::int64_t kUnit>
void pack_rows(const View& part, std::int64_t part_first, std::int64_t first, std::int64_t last,
               const PanelLayout& layout, std::byte* data) {
  // Columns are copied 64 at a time, so that the cache lines of a panel's rows stay in the L1 cache.
  constexpr std::int64_t kColumns = 64;
  for (std::int64_t column = 0; column < layout.cols; column += kColumns) {
    const std::int64_t end = std::min(column + kColumns, layout.cols);
    for (std::int64_t row = first; row < last; ++row) {
      const T* from = part.row<T>(row - part_first);
      std::byte* to = data + layout.offset(row, column);
      std::int64_t k = column;
      if (part.stride[1] == 1)
        for (; k + kUnit <= end; k += kUnit, to += layout.step_bytes())
          std::memcpy(to, from + k, kUnit * sizeof(T));
      for (; k < end; k += kUnit, to += layout.step_bytes())
        for (std::int64_t u = 0; u < std::min(kUnit, end - k); ++u)
          std::memcpy(to + u * static_cast<std::int64_t>(sizeof(T)), from + (k + u) * part.stride[1],
                      sizeof(T));
    }
  }
}

void pack_part(const View& part, std::int64_t part_first, std::int64_t panel, const PanelLayout& layout,
               std::byte* data) {
  const std::int64_t first = std::max(part_first, panel * layout.width);
  const std::int64_t last = std::min(part_first + part.size(0), (panel + 1) * layout.width);
  if (layout.element_bytes == 1)
    return pack_rows<std::uint8_t, 2>(part, part_first, first, last, layout, data);
  if (layout.element_bytes == 4)
    return pack_rows<std::uint32_t, 1>(part, part_first, first, last, layout, data);
  if (layout.unit == 1) return pack_rows<std::uint16_t, 1>(part, part_first, first, last, layout, data);
  pack_rows<std::uint16_t, 2>(part, part_first, first, last, layout, data);
}

DType dtype_of(const MatrixPart& part) {
  return part.encoding == Encoding::fp8 ? DType::f8_e4m3 : part.values.dtype;
}

// Packs the scales of fp8 parts. Returns an error if parts have different numbers of groups.
Result<PanelScales> pack_scales(const MatrixSource& source, const PanelLayout& layout) {
  const std::int64_t groups = source.parts[0].scales.size(1);
  const std::int64_t columns = layout.cols / groups;
  if (groups > 1 && (columns * groups != layout.cols || columns % layout.unit != 0))
    return failure(ErrorCode::unsupported, "an fp8 matrix cannot have {} scales for {} columns", groups,
                   layout.cols);
  PanelScales scales{.groups = groups, .group_steps = groups == 1 ? layout.steps() : columns / layout.unit};
  TRY(scales.data, allocate_host_packed(static_cast<std::size_t>(layout.panels() * groups * layout.width) *
                                        sizeof(float)));
  auto* to = static_cast<float*>(scales.data.data());
  std::int64_t row = 0;
  for (const MatrixPart& part : source.parts) {
    if (part.scales.size(1) != groups)
      return failure(ErrorCode::unsupported,
                     "the parts of a fused fp8 matrix have {} and {} scales a row; the numbers must be equal",
                     groups, part.scales.size(1));
    for (std::int64_t r = 0; r < part.rows(); ++r, ++row)
      for (std::int64_t g = 0; g < groups; ++g)
        to[(row / layout.width * groups + g) * layout.width + row % layout.width] =
            part.scales.row<float>(r)[g * part.scales.stride[1]];
  }
  return scales;
}

}  // namespace

PanelLayout panel_layout(std::int64_t rows, std::int64_t cols, DType dtype, const IsaKernels& kernels) {
  return {.rows = rows,
          .cols = cols,
          .width = 2 * kernels.lanes,
          .unit = dtype == DType::bf16 || dtype == DType::f8_e4m3 ? 2 : 1,
          .element_bytes = static_cast<std::int64_t>(size_of(dtype))};
}

Format format_of(DType type) {
  switch (type) {
    case DType::f32:
      return Format::f32;
    case DType::bf16:
      return Format::bf16;
    case DType::f16:
      return Format::f16;
    default:
      CHECK(false, "{} is not a floating-point format", name(type));
  }
}

Operand operand_of(DType type, bool dot) {
  switch (type) {
    case DType::f32:
      return Operand::f32;
    case DType::f16:
      return Operand::f16;
    case DType::f8_e4m3:
      return dot ? Operand::e4m3_dot : Operand::e4m3;
    case DType::i8:
      return dot ? Operand::i8_dot : Operand::i8;
    default:
      return dot ? Operand::bf16_dot : Operand::bf16;
  }
}

void PanelWeight::read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels& kernels,
                       float* out) const {
  const std::int64_t step_part = layout_.unit * layout_.element_bytes;
  alignas(64) std::byte part[kReadColumns * 4];
  const std::byte* from = data() + layout_.offset(row, column);
  for (std::int64_t i = 0; i * layout_.unit < count; ++i)
    std::memcpy(part + i * step_part, from + i * layout_.step_bytes(), static_cast<std::size_t>(step_part));
  if (dtype_ != DType::f8_e4m3) return kernels.widen(part, format_of(dtype_), out, count);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = to_f32(Float8E4M3{static_cast<std::uint8_t>(part[i])}) *
             scales_.at(layout_, row / layout_.width,
                        (column + i) / layout_.unit / scales_.group_steps)[row % layout_.width];
}

DType activation_of(DType stored) { return stored == DType::bf16 ? DType::bf16 : DType::f32; }

Result<WeightPtr> prepare(Device& device, const MatrixSource& source) {
  CHECK(!source.parts.empty());
  std::size_t quantised = 0;
  for (const MatrixPart& part : source.parts) {
    CHECK(part.values.rank == 2 && part.cols() == source.parts[0].cols(),
          "all parts of a matrix must have the same number of columns");
    quantised += part.encoding == Encoding::plain || part.encoding == Encoding::fp8 ? 0 : 1;
  }
  if (quantised == source.parts.size()) return prepare_quantised(static_cast<CpuDevice&>(device), source);
  if (quantised > 0)
    return failure(ErrorCode::unsupported,
                   "the parts of a fused matrix must be either all quantised or all plain");
  CpuStream& stream = static_cast<CpuDevice&>(device).stream();
  const DType dtype = dtype_of(source.parts[0]);
  PanelLayout layout = panel_layout(0, source.parts[0].cols(), dtype, stream.kernels());
  for (const MatrixPart& part : source.parts) {
    if (dtype_of(part) != dtype)
      return failure(ErrorCode::unsupported,
                     "the parts of a fused matrix are {} and {}; they must have one format", name(dtype),
                     name(dtype_of(part)));
    layout.rows += part.rows();
  }
  TRY_VOID(stream.reserve_shared(matmul_scratch_bytes(layout.cols)));
  TRY(Buffer data, allocate_host_packed(static_cast<std::size_t>(layout.bytes())));
  auto* bytes = static_cast<std::byte*>(data.data());
  stream.pool().for_ranges(layout.panels(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      std::int64_t part_first = 0;
      for (const MatrixPart& part : source.parts) {
        pack_part(part.values, part_first, panel, layout, bytes);
        part_first += part.rows();
      }
    }
  });
  PanelScales scales;
  if (dtype == DType::f8_e4m3) {
    TRY(scales, pack_scales(source, layout));
  }
  const bool in_bf16 = layout.unit == 2 && source.activation == DType::bf16;
  return std::make_unique<const PanelWeight>(layout, dtype, in_bf16 ? DType::bf16 : DType::f32,
                                             std::move(data), std::move(scales));
}

}  // namespace octavo::cpu
