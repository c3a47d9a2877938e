// Matrices of the CPU backend, and how those of plain numbers lie in memory.
#pragma once

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/isa.h"
#include "kernels/ops.h"
#include "kernels/weight_memory.h"

namespace octavo::cpu {

class CpuWeight : public Weight {
 public:
  using Weight::Weight;
  // x_rows: not null, row i of y is that of row x_rows[i] of x.
  virtual void multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const = 0;
  // Columns [column, column + count) of one row as f32; at most kReadColumns, from an even column on.
  virtual void read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels& kernels,
                    float* out) const = 0;
  // Adds its pieces, and what tells their format apart (weight_memory.h).
  virtual void describe(WeightMemory& memory) const = 0;
};
constexpr std::int64_t kReadColumns = 512;

// Panels of `width` rows (two vectors of lanes) follow each other; in a panel, step after step, each step
// holding one number (or a pair k, k + 1 of bf16) of every row of the panel. A product streams it from front
// to back. Rows and columns that do not fill a panel or pair are zeros.
struct PanelLayout {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t width = 0;  // rows of a panel
  std::int64_t unit = 1;   // consecutive k side by side
  std::int64_t element_bytes = 4;

  std::int64_t panels() const { return (rows + width - 1) / width; }
  std::int64_t steps() const { return (cols + unit - 1) / unit; }
  std::int64_t step_bytes() const { return width * unit * element_bytes; }
  std::int64_t panel_bytes() const { return steps() * step_bytes(); }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  // Where element (row, col) lies, in bytes.
  std::int64_t offset(std::int64_t row, std::int64_t col) const {
    return row / width * panel_bytes() + col / unit * step_bytes() +
           (row % width * unit + col % unit) * element_bytes;
  }
};

// What the numbers of some columns of every row are multiplied by: [panel][group][width]. No data: by 1.
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

// The dtype as a kernel format; it must be one of the three floating-point ones.
Format format_of(DType type);
// The operand that tiles make of numbers of this format; `dot`: for dot products with bf16.
Operand operand_of(DType type, bool dot);

}  // namespace octavo::cpu
