#include "weights/dummy.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/random.h"

namespace octavo {
namespace {

// Maximum magnitude of the random weights, as in vLLM. It is so small that activations do not overflow in any
// network.
constexpr float kLargest = 1e-3F;

std::size_t numbers_of(const Slot& slot) {
  return std::accumulate(slot.shape.begin(), slot.shape.end(), std::size_t{1},
                         [](std::size_t n, std::int64_t extent) { return n * static_cast<std::size_t>(extent); });
}

}  // namespace

Result<Checkpoint> dummy_checkpoint(std::span<const Slot> slots) {
  // slots by name; several slots may name the same tensor
  std::map<std::string_view, const Slot*> by_name;
  std::size_t numbers = 0, integers = 0;
  for (const Slot& slot : slots) {
    by_name.emplace(slot.name, &slot);
    std::size_t& most = slot.integers ? integers : numbers;
    most = std::max(most, numbers_of(slot));
  }
  TRY(Buffer memory, allocate_host(integers * sizeof(std::int64_t) + numbers * sizeof(std::uint16_t)));
  const std::span bytes(static_cast<std::byte*>(memory.data()), memory.bytes());
  const std::span zeros = bytes.first(integers * sizeof(std::int64_t)), random = bytes.subspan(zeros.size());
  for (std::size_t i = 0; i < numbers; ++i)
    put_number(random.data(), DType::bf16, i, kLargest * static_cast<float>(2 * random_unit(0, i) - 1));

  std::vector<StoredTensor> tensors;
  for (const auto& [name, slot] : by_name) {
    const std::size_t count = numbers_of(*slot);
    tensors.push_back({.name = std::string(name),
                       .format = slot->integers ? "I64" : "BF16",
                       .dtype = slot->integers ? DType::i64 : DType::bf16,
                       .shape = slot->shape,
                       .bytes = slot->integers ? zeros.first(count * sizeof(std::int64_t))
                                               : random.first(count * sizeof(std::uint16_t))});
  }
  return Checkpoint(std::move(tensors), std::move(memory));
}

}  // namespace octavo
