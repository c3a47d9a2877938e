// Stores matrices as dequantised f32 numbers, and multiplies them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "tensor/dequantize.h"

namespace octavo::reference {

DType activation_of(DType stored) { return stored == DType::bf16 ? DType::bf16 : DType::f32; }

Result<WeightPtr> prepare(Device& device, const MatrixSource& source) {
  CHECK(!source.parts.empty());
  const std::int64_t cols = source.parts[0].cols();
  std::int64_t rows = 0;
  for (const MatrixPart& part : source.parts) {
    CHECK(part.values.rank == 2 && part.cols() == cols,
          "all parts of a matrix must have the same number of columns");
    rows += part.rows();
  }
  TRY(Buffer data, device.allocate(static_cast<std::size_t>(rows * cols) * sizeof(float)));
  const View all = data.view(DType::f32, {rows, cols});
  std::int64_t first = 0;
  for (const MatrixPart& part : source.parts) {
    for (std::int64_t r = 0; r < part.rows(); ++r) dequantize(part, r, all.row<float>(first + r));
    first += part.rows();
  }
  return std::make_unique<const ReferenceWeight>(rows, cols, source, std::move(data));
}

// Returns row i of x, rounded as the matrix requires.
static std::vector<double> row_of(const View& x, std::int64_t i, const Fp8Rounding& rounding) {
  std::vector<double> row;
  for (std::int64_t k = 0; k < x.size(1); ++k) row.push_back(at(x, {i, k}));
  for (std::size_t first = 0; rounding.group > 0 && first < row.size();
       first += static_cast<std::size_t>(rounding.group)) {
    const auto end = std::min(row.size(), first + static_cast<std::size_t>(rounding.group));
    double largest = 0;
    for (std::size_t k = first; k < end; ++k) largest = std::max(largest, std::abs(row[k]));
    const float scale = rounding.scale > 0 ? rounding.scale : fp8_scale(static_cast<float>(largest));
    for (std::size_t k = first; k < end; ++k)
      row[k] = double{scale} * to_f32(to_f8_e4m3(static_cast<float>(row[k]) / scale));
  }
  return row;
}

void matmul(Stream&, const MatmulArgs& args) {
  multiply(args, static_cast<const ReferenceWeight&>(args.w).rounding());
}

void multiply(const MatmulArgs& args, const Fp8Rounding& rounding) {
  const View w = static_cast<const ReferenceWeight&>(args.w).view();
  for (std::int64_t i = 0; i < args.y.size(0); ++i) {
    const std::vector<double> x = row_of(args.x, i, rounding);
    for (std::int64_t r = 0; r < args.w.rows(); ++r) {
      double sum = args.bias ? at(args.bias, {r}) : 0;
      for (std::int64_t k = 0; k < args.w.cols(); ++k) sum += x[static_cast<std::size_t>(k)] * at(w, {r, k});
      put(args.y, {i, r}, sum);
    }
  }
}

void head_matmul(Stream&, const HeadMatmulArgs& args) {
  const View w = static_cast<const ReferenceWeight&>(args.w).view();
  const std::int64_t rows = args.y.size(2);
  for (std::int64_t i = 0; i < args.y.size(0); ++i)
    for (std::int64_t h = 0; h < args.y.size(1); ++h)
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (std::int64_t k = 0; k < args.w.cols(); ++k)
          sum += at(args.x, {i, h, k}) * at(w, {h * rows + r, k});
        put(args.y, {i, h, r}, sum);
      }
}

}  // namespace octavo::reference
