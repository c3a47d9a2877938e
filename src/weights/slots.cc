#include "weights/slots.h"

#include <algorithm>
#include <array>
#include <set>

namespace octavo {
namespace {

using Shape = std::vector<std::int64_t>;

// Removes dimensions of 1 at the start, because GGUF files omit them.
Shape shortened(const Shape& shape) {
  return {std::ranges::find_if(shape, [](std::int64_t extent) { return extent != 1; }), shape.end()};
}

bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

// Formats names as "a, b, c and 17 more".
std::string some_of(std::span<const std::string_view> names) {
  constexpr std::size_t kShown = 5;
  std::string text = fmt::format("{}", fmt::join(names.first(std::min(names.size(), kShown)), ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

Result<> check_tensor(const StoredTensor& tensor, const Slot& slot) {
  // GGUF files store a depthwise convolution [channels, 1, width] as [channels, width].
  const bool by_channel = slot.shape.size() == 3 && slot.shape[1] == 1;
  const bool squeezed = by_channel && tensor.shape == std::vector{slot.shape[0], slot.shape[2]};
  // One number per head may be stored as [1, 1, heads, 1] or [heads].
  const bool by_head = slot.shape.size() == 4 && slot.shape == Shape{1, 1, slot.shape[2], 1} &&
                       tensor.shape == Shape{slot.shape[2]};
  if (shortened(tensor.shape) != shortened(slot.shape) && !squeezed && !by_head) {
    return failure(ErrorCode::corrupt, "tensor {} has shape [{}], but the configuration requires [{}]",
                   slot.name, fmt::join(tensor.shape, ", "), fmt::join(slot.shape, ", "));
  }
  if (slot.integers) {
    if (tensor.dtype == DType::i64 || tensor.dtype == DType::i32) return {};
    return failure(ErrorCode::unsupported, "tensor {} is {}, but whole numbers must be I64 or I32", slot.name,
                   tensor.format);
  }
  if (!tensor.usable()) {
    std::vector<std::string_view> blocks;
    for (int i = static_cast<int>(kFirstBlocks); i <= static_cast<int>(kLastBlocks); ++i)
      blocks.push_back(name(static_cast<Encoding>(i)));
    return failure(ErrorCode::unsupported,
                   "tensor {} is {}, but must be F32, F16, BF16, MXFP4, NVFP4 or one of {}", slot.name,
                   tensor.format, fmt::join(blocks, ", "));
  }
  if ((slot.shape.size() == 1 || by_channel) && !tensor.plain()) {
    return failure(ErrorCode::unsupported, "tensor {} is {}, but a vector must be F32, F16 or BF16",
                   slot.name, tensor.format);
  }
  return {};
}

// Older checkpoints store the tables of RoPE. The engine computes them from config.json.
bool is_rotary_buffer(std::string_view name) {
  return std::ranges::any_of(std::array{".inv_freq", ".rotary_emb.cos_cached", ".rotary_emb.sin_cached"},
                             [&](std::string_view end) { return name.ends_with(end); });
}

// The first GPTQ tools wrote a bias of zeros beside each matrix, even if the network had none.
bool is_zero_bias(const StoredTensor& tensor, const Checkpoint& checkpoint) {
  constexpr std::string_view kEnd = "bias";
  if (!tensor.name.ends_with(".bias")) return false;
  const std::string matrix = tensor.name.substr(0, tensor.name.size() - kEnd.size()) + "weight";
  const StoredTensor* packed = checkpoint.find(matrix);
  return packed != nullptr && packed->packed &&
         std::ranges::all_of(tensor.bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

Result<> check_slots(const Checkpoint& checkpoint, std::span<const Slot> slots,
                     std::span<const std::string> ignorable) {
  std::vector<std::string_view> missing;
  std::set<std::string_view> wanted;
  for (const Slot& slot : slots) {
    if (!wanted.insert(slot.name).second) continue;  // several slots may use one stack of matrices
    const StoredTensor* tensor = checkpoint.find(slot.name);
    if (tensor == nullptr) {
      missing.push_back(slot.name);
    } else {
      TRY_VOID(check_tensor(*tensor, slot));
    }
  }
  if (!missing.empty()) {
    return failure(ErrorCode::corrupt, "{} of {} tensors are missing: {}", missing.size(), wanted.size(),
                   some_of(missing));
  }
  std::vector<std::string_view> unused;
  for (const StoredTensor& t : checkpoint.tensors()) {
    const bool known = wanted.contains(t.name) ||
                       std::ranges::any_of(ignorable, [&](const auto& p) { return matches(t.name, p); }) ||
                       is_rotary_buffer(t.name) || is_zero_bias(t, checkpoint);
    if (!known) unused.push_back(t.name);
  }
  if (!unused.empty()) {
    return failure(ErrorCode::corrupt, "{} tensors do not belong to this architecture: {}", unused.size(),
                   some_of(unused));
  }
  return {};
}

}  // namespace octavo
