// Weights from the checkpoint into panels.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo::cpu {
namespace {

// Rows [first, last) of the matrix, all in one panel, into that panel. T is as wide as an element.
template <class T, std::int64_t kUnit>
void pack_rows(const View& part, std::int64_t part_first, std::int64_t first, std::int64_t last,
               const PanelLayout& layout, std::byte* data) {
  constexpr std::int64_t kColumns = 64;  // the lines of a panel's rows that stay in the first-level cache
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
  if (layout.element_bytes == 4)
    return pack_rows<std::uint32_t, 1>(part, part_first, first, last, layout, data);
  if (layout.unit == 1) return pack_rows<std::uint16_t, 1>(part, part_first, first, last, layout, data);
  pack_rows<std::uint16_t, 2>(part, part_first, first, last, layout, data);
}

}  // namespace

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

void PanelWeight::read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels& kernels,
                       float* out) const {
  const std::int64_t step_part = layout_.unit * layout_.element_bytes;
  alignas(64) std::byte part[kReadColumns * 4];
  const std::byte* from = data() + layout_.offset(row, column);
  for (std::int64_t i = 0; i * layout_.unit < count; ++i)
    std::memcpy(part + i * step_part, from + i * layout_.step_bytes(), static_cast<std::size_t>(step_part));
  kernels.widen(part, format_, out, count);
}

Result<WeightPtr> prepare(Device& device, const MatrixSource& source) {
  CHECK(!source.parts.empty());
  std::size_t plain = 0;
  for (const MatrixPart& part : source.parts) {
    CHECK(part.values.rank == 2 && part.cols() == source.parts[0].cols(),
          "parts of a matrix must have as many columns");
    if (part.encoding == Encoding::fp8)
      return failure(ErrorCode::unsupported, "a matrix in {}", name(part.encoding));
    plain += part.encoding == Encoding::plain ? 1 : 0;
  }
  if (plain == 0) return prepare_quantised(static_cast<CpuDevice&>(device), source);
  if (plain < source.parts.size())
    return failure(ErrorCode::unsupported, "a fused matrix of both quantised and plain parts");
  CpuStream& stream = static_cast<CpuDevice&>(device).stream();
  const DType dtype = source.parts[0].values.dtype;
  PanelLayout layout{.cols = source.parts[0].cols(),
                     .width = 2 * stream.kernels().lanes,
                     .unit = dtype == DType::bf16 ? 2 : 1,
                     .element_bytes = static_cast<std::int64_t>(size_of(dtype))};
  for (const MatrixPart& part : source.parts) {
    if (part.values.dtype != dtype)
      return failure(ErrorCode::unsupported, "a fused matrix of both {} and {}", name(dtype),
                     name(part.values.dtype));
    layout.rows += part.rows();
  }
  TRY_VOID(stream.reserve_shared(matmul_scratch_bytes(layout.cols)));
  TRY(Buffer data, device.allocate(static_cast<std::size_t>(layout.bytes())));
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
  const bool in_bf16 = dtype == DType::bf16 && source.activation == DType::bf16;
  return std::make_unique<const PanelWeight>(layout, format_of(dtype), in_bf16 ? DType::bf16 : DType::f32,
                                             std::move(data));
}

}  // namespace octavo::cpu
