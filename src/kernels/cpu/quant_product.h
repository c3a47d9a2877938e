// A product y = x W^T + bias with a quantised matrix: the parts that products on vectors (quant_matmul.cc)
// and products on matrix tiles (tile_quant_matmul.cc) have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/late_panels.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/quant_weight.h"

namespace octavo::cpu {

// Number of multiplications above which waking the other threads saves time.
constexpr std::int64_t kQuantWorthSharing = 1 << 19;

// x before it is quantised.
struct QuantSource {
  const std::byte* data;
  Format format;
  std::int64_t element_bytes;
  std::int64_t stride;       // bytes
  const std::int32_t* rows;  // null: row i of y uses row i of x
  std::int64_t cols;
  std::int64_t shared;  // groups that share a scale
  const std::byte* at(std::int64_t row, std::int64_t column) const {
    return data + (rows != nullptr ? rows[row] : row) * stride + column * element_bytes;
  }
};

// Calls body(panels, unit) for all units of a product with a band whose panels may not be written yet: writes
// a missing panel to working memory before its units. `first_panel` is the number of the band's first panel
// in `late`. A unit has at most `unit_rows` rows.
template <class Body>
void for_late_panels(CpuStream& stream, const QuantBand& band, LatePanels& late, std::int64_t first_panel,
                     std::int64_t rows, std::int64_t unit_rows, Body&& body) {
  const std::int64_t bytes = band.layout.panel_bytes();
  stream.pool().for_units(band.layout.panels(), [&](int rank, std::int64_t panel) {
    QuantPanels panels = band.panels();
    if (const auto file = late.ready(band, panel, first_panel + panel) ? nullptr : late.file(); file) {
      std::byte* const copy = stream.scratch(rank, static_cast<std::size_t>(bytes));
      band.write(panel, copy);
      late.end_read(*file, band, panel);
      panels.data = copy - panel * bytes;
    }
    for (std::int64_t row = 0; row < rows; row += unit_rows)
      body(panels, MatmulUnit{row, std::min(row + unit_rows, rows), panel, panel + 1});
  });
}

// Calls body(panels, unit) for all units of a product with all bands. `late` is null if all panels are
// written; then for_units(band, body) divides the product.
template <class ForUnits, class Body>
void for_bands(CpuStream& stream, const std::vector<QuantBand>& bands, LatePanels* late, std::int64_t rows,
               std::int64_t unit_rows, ForUnits&& for_units, Body&& body) {
  std::int64_t first_panel = 0;
  if (late != nullptr) late->begin_product();
  for (const QuantBand& band : bands) {
    if (late != nullptr)
      for_late_panels(stream, band, *late, first_panel, rows, unit_rows, body);
    else
      for_units(band, [&](const MatmulUnit& unit) { body(band.panels(), unit); });
    first_panel += band.layout.panels();
  }
}

// Writes the sums of a unit, in rows of c_stride floats. `first_row` is the row of y for the unit's row 0.
void write_quant_unit(const IsaKernels& kernels, const MatmulArgs& args, const QuantPanels& band,
                      std::int64_t first_row, const MatmulUnit& unit, const float* c, std::int64_t c_stride);

std::size_t tile_quant_scratch_bytes(std::int64_t cols);
// Multiplies `rows` rows, from `first_row` on, with matrix tiles. `late` is null if all panels are written.
void tile_quant_matmul(CpuStream& stream, const MatmulArgs& args, const QuantSource& source,
                       const std::vector<QuantBand>& bands, LatePanels* late, std::int64_t first_row,
                       std::int64_t rows, std::byte* scratch);

}  // namespace octavo::cpu
