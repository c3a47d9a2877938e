#include "weights/encoder_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

// Limits of a matrix's inputs and outputs are numbers, which the conversion stores as vectors.
bool is_number(const std::string& name) { return name.ends_with("put_min") || name.ends_with("put_max"); }

bool loses_dimensions(const std::string& name) {
  return name.ends_with(".bias") || name == "v.class_embd" || name == "v.position_embd.weight";
}

}  // namespace

Result<Buffer> restore_encoder_tensors(std::vector<StoredTensor>& tensors) {
  for (StoredTensor& tensor : tensors)
    if (is_number(tensor.name) && tensor.shape == std::vector<std::int64_t>{1})
      tensor.shape.clear();
    else if (loses_dimensions(tensor.name) && std::ranges::count(tensor.shape, 1) < std::ssize(tensor.shape))
      std::erase(tensor.shape, 1);
  const auto first = std::ranges::find(tensors, "v.patch_embd.weight", &StoredTensor::name),
             second = std::ranges::find(tensors, "v.patch_embd.weight.1", &StoredTensor::name);
  if (first == tensors.end() || second == tensors.end()) return Buffer();
  if (first->shape != second->shape || first->dtype != second->dtype || !first->plain() ||
      first->shape.size() != 4)
    return failure(
        ErrorCode::corrupt,
        "{} is {} with shape [{}] and {} is {} with shape [{}], but both must have the same format "
        "and the shape [dim, 3, side, side]",
        first->name, first->format, fmt::join(first->shape, ", "), second->name, second->format,
        fmt::join(second->shape, ", "));
  TRY(Buffer memory, allocate_host(2 * first->bytes.size()));
  auto* out = static_cast<std::byte*>(memory.data());
  const std::size_t planes = static_cast<std::size_t>(first->shape[0] * first->shape[1]),
                    plane = first->bytes.size() / planes;
  for (std::size_t i = 0; i < planes; ++i)
    for (const StoredTensor* frame : {&*first, &*second}) {
      std::memcpy(out, frame->bytes.data() + i * plane, plane);
      out += plane;
    }
  first->shape.insert(first->shape.begin() + 2, 2);
  first->bytes = {static_cast<const std::byte*>(memory.data()), planes * 2 * plane};
  tensors.erase(second);
  return memory;
}

}  // namespace octavo
