// Matrices of the CPU backend, and the layout of unquantised ones.
#pragma once

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/isa.h"
#include "kernels/ops.h"
#include "kernels/weight_memory.h"

namespace octavo::cpu {

class CpuWeight : public Weight {
 public:
  using Weight::Weight;
  // x_rows: if not null, row i of y uses row x_rows[i] of x.
  virtual void multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const = 0;
  // Columns [column, column + count) of one row as f32; at most kReadColumns; `column` must be even.
  virtual void read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels& kernels,
                    float* out) const = 0;
  // Adds its pieces and an identifier of its format (weight_memory.h).
  virtual void describe(WeightMemory& memory) const = 0;
};
constexpr std::int64_t kReadColumns = 512;

// Panels of `width` rows (two vectors of lanes) follow each other. A panel is a sequence of steps, and a step
// holds one number (or a pair k, k + 1 of bf16) of every row. A product streams a panel from front to back.
// Rows and columns that do not fill a panel or pair are zeros.
struct PanelLayout {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t width = 0;  // rows of a panel
  std::int64_t unit = 1;   // consecutive k per step
  std::int64_t element_bytes = 4;

  std::int64_t panels() const { return (rows + width - 1) / width; }
  std::int64_t steps() const { return (cols + unit - 1) / unit; }
  std::int64_t step_bytes() const { return width * unit * element_bytes; }
  std::int64_t panel_bytes() const { return steps() * step_bytes(); }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  // Byte offset of element (row, col).
  std::int64_t offset(std::int64_t row, std::int64_t col) const {
    return row / width * panel_bytes() + col / unit * step_bytes() +
           (row % width * unit + col % unit) * element_bytes;
  }
};

// Factors for some columns of every row: [panel][group][width]. No data: factor 1.
struct PanelScales {
  std::int64_t groups = 0;
  std::int64_t group_steps = 0;
  Buffer data = {};
  const float* at(const PanelLayout& layout, std::int64_t panel, std::int64_t group) const {
    return static_cast<const float*>(data.data()) + (panel * groups + group) * layout.width;
  }
};

// f32, f16, bf16, or f8_e4m3 with scales.
class PanelWeight final : public CpuWeight {
 public:
  PanelWeight(const PanelLayout& layout, DType dtype, DType activation, Buffer data, PanelScales scales)
      : CpuWeight(layout.rows, layout.cols, activation, data.bytes() + scales.data.bytes()),
        layout_(layout),
        dtype_(dtype),
        data_(std::move(data)),
        scales_(std::move(scales)) {}
  void multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const override;
  void read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels& kernels,
            float* out) const override;
  void describe(WeightMemory& memory) const override;
  const PanelLayout& layout() const { return layout_; }
  DType dtype() const { return dtype_; }
  const PanelScales& scales() const { return scales_; }
  const std::byte* data() const { return static_cast<const std::byte*>(data_.data()); }
  // Two vectors make a step of a panel.
  std::int64_t vector_stride() const { return layout_.step_bytes() / 2; }

 private:
  PanelLayout layout_;
  DType dtype_;
  Buffer data_;
  PanelScales scales_;
};

// Kernel format of the dtype, which must be one of the three floating-point ones.
Format format_of(DType type);
// Operand type of the tiles for numbers of this format; `dot`: for dot products with bf16.
Operand operand_of(DType type, bool dot);

}  // namespace octavo::cpu
