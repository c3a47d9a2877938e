#include "weights/slots.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

namespace octavo {
namespace {

bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

// "a, b, c and 17 more"
std::string some_of(std::span<const std::string_view> names) {
  constexpr std::size_t kShown = 5;
  std::string text = fmt::format("{}", fmt::join(names.first(std::min(names.size(), kShown)), ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

Result<> check_tensor(const StoredTensor& tensor, const Slot& slot) {
  if (tensor.shape != slot.shape) {
    return failure(ErrorCode::corrupt, "tensor {} has shape [{}], config.json asks for [{}]", slot.name,
                   fmt::join(tensor.shape, ", "), fmt::join(slot.shape, ", "));
  }
  const bool known = tensor.dtype == DType::f32 || tensor.dtype == DType::f16 || tensor.dtype == DType::bf16;
  if (!known) {
    return failure(ErrorCode::unsupported, "tensor {} is {}; F32, F16 and BF16 can be loaded", slot.name,
                   tensor.dtype_name);
  }
  return {};
}

// Elements looked at in one go: they stay in the first-level cache.
constexpr std::size_t kBlock = 4096;

// A float is not finite when all bits of its exponent are set. `Bits` is the unsigned type of its size. The
// largest exponent of a block is one lane-wise maximum, so that the compiler can use vectors.
template <class Bits>
bool all_finite(std::span<const std::byte> bytes, Bits exponent_mask) {
  const std::size_t count = bytes.size() / sizeof(Bits);
  Bits block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    // The data of a tensor may lie at any byte.
    std::memcpy(block, bytes.data() + begin * sizeof(Bits), n * sizeof(Bits));
    Bits largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto exponent = static_cast<Bits>(block[i] & exponent_mask);
      largest = exponent > largest ? exponent : largest;
    }
    if (largest == exponent_mask) return false;
  }
  return true;
}

bool all_finite(std::span<const std::byte> bytes, DType type) {
  if (type == DType::f32) return all_finite<std::uint32_t>(bytes, 0x7f800000);
  if (type == DType::bf16) return all_finite<std::uint16_t>(bytes, 0x7f80);
  return all_finite<std::uint16_t>(bytes, 0x7c00);
}

}  // namespace

Result<> check_slots(const Checkpoint& checkpoint, std::span<const Slot> slots,
                     std::span<const std::string> ignorable) {
  std::vector<std::string_view> missing;
  std::set<std::string_view> wanted;
  for (const Slot& slot : slots) {
    wanted.insert(slot.name);
    const StoredTensor* tensor = checkpoint.find(slot.name);
    if (tensor == nullptr) {
      missing.push_back(slot.name);
    } else {
      TRY_VOID(check_tensor(*tensor, slot));
    }
  }
  if (!missing.empty()) {
    return failure(ErrorCode::corrupt, "{} of {} tensors are missing: {}", missing.size(), slots.size(),
                   some_of(missing));
  }
  std::vector<std::string_view> unused;
  for (const StoredTensor& t : checkpoint.tensors()) {
    const bool known = wanted.contains(t.name) ||
                       std::ranges::any_of(ignorable, [&](const auto& p) { return matches(t.name, p); });
    if (!known) unused.push_back(t.name);
  }
  if (!unused.empty()) {
    return failure(ErrorCode::corrupt, "{} tensors have no place in this architecture: {}", unused.size(),
                   some_of(unused));
  }
  return {};
}

Result<> check_finite(const StoredTensor& tensor, ThreadPool& pool) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // bytes; a multiple of every element's size
  std::atomic<bool> finite = true;
  pool.for_ranges(std::ssize(tensor.bytes), kPiece, [&](std::int64_t begin, std::int64_t end) {
    const auto piece =
        tensor.bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    if (!all_finite(piece, *tensor.dtype)) finite = false;
  });
  if (!finite) {
    return failure(ErrorCode::corrupt, "tensor {} holds NaN or infinity in {}", tensor.name,
                   name(*tensor.dtype));
  }
  return {};
}

}  // namespace octavo
