// Base class of the CPU backend's matrices, and the layout of unquantised matrices.
#pragma once

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/isa.h"
#include "kernels/ops.h"
#include "kernels/weight_memory.h"

namespace octavo::cpu {

class CpuWeight : public Weight {
 public:
  using Weight::Weight;
  // Computes y = x W^T. If x_rows is not null, row i of y uses row x_rows[i] of x.
  virtual void multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const = 0;
  // Reads columns [column, column + count) of one row as f32. `count` is at most kReadColumns; `column`
  // must be even.
  virtual void read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels& kernels,
                    float* out) const = 0;
  // Adds the memory of the matrix and the numbers of its format to `memory` (weight_memory.h).
  virtual void describe(WeightMemory& memory) const = 0;
};
constexpr std::int64_t kReadColumns = 512;

// Layout of an unquantised matrix: a sequence of panels of `width` rows (two vectors). A panel is a
// sequence of steps. A step has one column of every row or, in bf16, the pair of columns k, k + 1. So a
// product reads a panel in order. The last panel and the last pair are padded with zeros.
struct PanelLayout {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t width = 0;  // rows in a panel
  std::int64_t unit = 1;   // consecutive columns in a step
  std::int64_t element_bytes = 4;

  std::int64_t panels() const { return (rows + width - 1) / width; }
  std::int64_t steps() const { return (cols + unit - 1) / unit; }
  std::int64_t step_bytes() const { return width * unit * element_bytes; }
  std::int64_t panel_bytes() const { return steps() * step_bytes(); }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  std::int64_t offset(std::int64_t row, std::int64_t col) const {
    return row / width * panel_bytes() + col / unit * step_bytes() +
           (row % width * unit + col % unit) * element_bytes;
  }
};

// Scales for groups of columns of each row: [panel][group][width]. If `data` is empty, all scales are 1.
struct PanelScales {
  std::int64_t groups = 0;
  std::int64_t group_steps = 0;
  Buffer data = {};
  const float* at(const PanelLayout& layout, std::int64_t panel, std::int64_t group) const {
    return static_cast<const float*>(data.data()) + (panel * groups + group) * layout.width;
  }
};

// A matrix in f32, f16 or bf16, or in f8_e4m3 with scales.
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
  // bytes from the first to the second vector of a step
  std::int64_t vector_stride() const { return layout_.step_bytes() / 2; }

 private:
  PanelLayout layout_;
  DType dtype_;
  Buffer data_;
  PanelScales scales_;
};

// Returns the layout of a matrix in this format: f32, f16, bf16 or f8_e4m3.
PanelLayout panel_layout(std::int64_t rows, std::int64_t cols, DType dtype, const IsaKernels& kernels);

// Returns the kernels' format for `type`, which must be f32, f16 or bf16.
Format format_of(DType type);
// Returns the type of operand W for a matrix in this format. If `dot`, products use bf16 dot products.
Operand operand_of(DType type, bool dot);

}  // namespace octavo::cpu
