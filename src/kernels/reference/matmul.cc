// Matrices as they are in the checkpoint, and their product.
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {

Result<WeightPtr> prepare(Device& device, const MatrixSource& source) {
  CHECK(!source.parts.empty());
  const std::int64_t cols = source.parts[0].cols();
  const DType format = source.parts[0].values.dtype;
  std::int64_t rows = 0;
  for (const MatrixPart& part : source.parts) {
    if (part.encoding != Encoding::plain)
      return failure(ErrorCode::unsupported, "a matrix in {}", name(part.encoding));
    CHECK(part.values.rank == 2 && part.cols() == cols && part.values.dtype == format,
          "parts of a matrix must agree");
    rows += part.rows();
  }
  TRY(Buffer data, device.allocate(static_cast<std::size_t>(rows * cols) * size_of(format)));
  const View all = data.view(format, {rows, cols});
  std::int64_t first = 0;
  for (const MatrixPart& part : source.parts) {
    for (std::int64_t r = 0; r < part.rows(); ++r)
      for (std::int64_t k = 0; k < cols; ++k) put(all, {first + r, k}, at(part.values, {r, k}));
    first += part.rows();
  }
  return std::make_unique<const ReferenceWeight>(rows, cols, source.activation, format, std::move(data));
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

}  // namespace octavo::reference
