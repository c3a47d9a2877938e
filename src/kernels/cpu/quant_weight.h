// A quantised matrix of the CPU backend. Products use the integer codes without dequantising them.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/quant_format.h"

namespace octavo::cpu {

// Sizes and offsets of a band, in bytes unless stated otherwise (quant_format.h).
struct QuantLayout {
  QuantKind kind = QuantKind::q8_0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t width = 0;  // rows in a panel
  std::int64_t block_groups = 1;

  const QuantFormat& format() const { return kQuantFormats[static_cast<int>(kind)]; }
  bool two_levels() const { return format().two_levels(); }
  bool has_min() const { return format().has_min(); }
  // Returns true if no scale changes within kQuantShared groups.
  bool wide() const { return scale_bytes() == 4 && (blocks() == 1 || block_groups % kQuantShared == 0); }
  std::int64_t scale_bytes() const { return format().scale_bytes(); }
  std::int64_t min_bytes() const { return format().min_bytes(); }
  std::int64_t sub_bytes() const { return format().sub_bytes(); }
  std::int64_t groups() const { return (cols + kQuantGroup - 1) / kQuantGroup; }
  std::int64_t blocks() const { return groups() / block_groups; }
  std::int64_t panels() const { return (rows + width - 1) / width; }
  std::int64_t header_bytes() const {
    return quant_header_bytes(static_cast<int>(width), static_cast<int>(scale_bytes() + min_bytes()));
  }
  std::int64_t group_bytes() const { return width * (sub_bytes() + 4 * code_bits()); }
  int code_bits() const { return format().low_bits + format().high_bits; }
  std::int64_t block_bytes() const { return header_bytes() + block_groups * group_bytes(); }
  // Returns the byte offset of a group in its panel. For the first group of a block, this is the offset of
  // the block's header.
  std::int64_t offset(std::int64_t block, std::int64_t group) const {
    return block * block_bytes() + (group > 0 ? header_bytes() + group * group_bytes() : 0);
  }
  std::int64_t panel_bytes() const { return blocks() * block_bytes(); }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
};

// The panels of a band that a product can read.
struct QuantPanels {
  const QuantLayout& layout;
  std::int64_t first_row;  // of the band in the matrix
  const std::byte* data;   // address of panel 0
  const std::byte* panel(std::int64_t i) const { return data + i * layout.panel_bytes(); }
};

// Consecutive rows of a matrix that have the same format.
struct QuantBand {
  QuantLayout layout;
  std::int64_t first_row;  // in the matrix
  std::vector<MatrixPart> parts;
  Buffer data = {};  // the panels
  std::byte* panel(std::int64_t i) const {
    return static_cast<std::byte*>(data.data()) + i * layout.panel_bytes();
  }
  QuantPanels panels() const { return {layout, first_row, panel(0)}; }
  // Converts the rows of panel i from the parts.
  void write(std::int64_t i, std::byte* panel) const;
  void write(std::int64_t i) const { write(i, panel(i)); }
};

class LatePanels;

class QuantWeight final : public CpuWeight {
 public:
  QuantWeight(std::int64_t rows, std::int64_t cols, DType activation, std::size_t bytes,
              std::vector<QuantBand> bands)
      : CpuWeight(rows, cols, activation, bytes), bands_(std::move(bands)) {}
  ~QuantWeight() override;
  // Writes all panels. Afterwards the parts are not needed.
  void write(ThreadPool& pool);
  // Lets the caller write the panels while products already use the matrix. `file` has all parts.
  std::shared_ptr<LatePanels> write_late(std::shared_ptr<const MappedFile> file);
  std::int64_t panels() const;
  std::size_t panel_bytes() const;  // of the largest panel
  void multiply(CpuStream& stream, const MatmulArgs& args, const std::int32_t* x_rows) const override;
  void read(std::int64_t row, std::int64_t column, std::int64_t count, const IsaKernels& kernels,
            float* out) const override;
  void describe(WeightMemory& memory) const override;

 private:
  std::int64_t groups_sharing_x() const;
  bool written() const;

  std::vector<QuantBand> bands_;
  std::shared_ptr<LatePanels> late_;  // null: all panels are written
};

// Returns a matrix whose panels are not written yet.
Result<std::unique_ptr<QuantWeight>> lay_out_quantised(CpuStream& stream, const MatrixSource& source);
Result<WeightPtr> prepare_quantised(CpuDevice& device, const MatrixSource& source);
// Writes the rows [first, first + count) of `part` to a panel, from the panel's row `panel_row` on.
void pack_rows(const MatrixPart& part, std::int64_t first, std::int64_t count, const QuantLayout& layout,
               std::int64_t panel_row, std::byte* panel);
std::size_t quant_scratch_bytes(const IsaKernels& kernels, std::int64_t cols);

}  // namespace octavo::cpu
