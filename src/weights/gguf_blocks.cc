#include "weights/gguf_blocks.h"

#include <algorithm>
#include <set>

namespace octavo {

StoredTensor matrix_of_blocks(const StoredTensor& tensor, const ItemBlocks& blocks) {
  auto matrix = std::make_shared<PackedMatrix>();
  matrix->codes = matrix->scales = tensor;
  matrix->scales.format = blocks.parts == kNvfp4Blocks.parts ? "F8_E4M3" : "U8";
  matrix->scale_cols = blocks.columns;
  matrix->scale_row_stride = tensor.shape.back() / (blocks.parts * blocks.columns) * blocks.bytes();
  matrix->code_items = {.bits = 4, .other_stride = 2 * matrix->scale_row_stride, .blocks = blocks};
  StoredTensor joined = tensor;
  joined.encoding = Encoding::mxfp4;
  joined.packed = std::move(matrix);
  return joined;
}

Result<> join_nvfp4_scales(std::vector<StoredTensor>& tensors) {
  constexpr std::string_view kEnd = "weight";
  std::set<std::string> used;
  for (StoredTensor& tensor : tensors) {
    if (tensor.format != "NVFP4" || !tensor.name.ends_with(kEnd)) continue;
    const std::string base = tensor.name.substr(0, tensor.name.size() - kEnd.size());
    used.insert(base + "input_scale");
    const auto scale = std::ranges::lower_bound(tensors, base + "scale", {}, &StoredTensor::name);
    if (scale == tensors.end() || scale->name != base + "scale") continue;
    const std::int64_t matrices = tensor.shape.size() > 2 ? tensor.shape[0] : 1;
    if (scale->dtype != DType::f32 || scale->shape != std::vector{matrices})
      return failure(ErrorCode::corrupt,
                     "tensor {} is {} with shape [{}], but the scales of an NVFP4 tensor must be F32 [{}]",
                     scale->name, scale->format, fmt::join(scale->shape, ", "), matrices);
    PackedMatrix matrix = *tensor.packed;
    matrix.global_scale = *scale;
    matrix.global_scale.shape = {matrices, 1};
    tensor.packed = std::make_shared<const PackedMatrix>(std::move(matrix));
    used.insert(scale->name);
  }
  std::erase_if(tensors, [&](const StoredTensor& tensor) { return used.contains(tensor.name); });
  return {};
}

}  // namespace octavo
