// Stores matrices as dequantised f32 numbers, and multiplies them.
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
  return std::make_unique<const ReferenceWeight>(rows, cols, source.activation, std::move(data));
}

void matmul(Stream&, const MatmulArgs& args) {
  const View w = static_cast<const ReferenceWeight&>(args.w).view();
  for (std::int64_t i = 0; i < args.y.size(0); ++i)
    for (std::int64_t r = 0; r < args.w.rows(); ++r) {
      double sum = args.bias ? at(args.bias, {r}) : 0;
      for (std::int64_t k = 0; k < args.w.cols(); ++k) sum += at(args.x, {i, k}) * at(w, {r, k});
      put(args.y, {i, r}, sum);
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
