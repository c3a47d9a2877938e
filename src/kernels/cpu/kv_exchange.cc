// Blocks between the layout of the CPU's kernels and the one that all backends share.
#include "kernels/kv_exchange.h"

#include <cstring>

#include "kernels/cpu/kv_layout.h"

namespace octavo::cpu {
namespace {

enum class Way : std::uint8_t { out, in };

template <Way way, class T>
void move(T* inside, T* outside) {
  if constexpr (way == Way::out)
    *outside = *inside;
  else
    *inside = *outside;
}

// One group of tokens: keys as words of `unit` dimensions, values token by token.
template <Way way, class Word>
void move_keys(std::byte* group, std::byte* rows, std::int64_t words) {
  auto* inside = reinterpret_cast<Word*>(group);
  auto* outside = reinterpret_cast<Word*>(rows);
  for (std::int64_t t = 0; t < kGroupTokens; ++t)
    for (std::int64_t i = 0; i < words; ++i)
      move<way>(inside + i * kGroupTokens + t, outside + t * words + i);
}

template <Way way, class Element>
void move_values(std::byte* group, std::byte* rows, const KvLayout& layout, std::int64_t dim) {
  auto* outside = reinterpret_cast<Element*>(rows);
  for (std::int64_t t = 0; t < kGroupTokens; ++t) {
    auto* inside = reinterpret_cast<Element*>(group + layout.value(t, 0));
    for (std::int64_t d = 0; d < dim; ++d) move<way>(inside + d * layout.unit, outside + t * dim + d);
  }
}

template <Way way>
void move_keys(const KvLayout& layout, std::int64_t dim, std::byte* group, std::byte* rows) {
  const std::int64_t words = dim / layout.unit;
  if (layout.element_bytes * layout.unit == 2) return move_keys<way, std::uint16_t>(group, rows, words);
  move_keys<way, std::uint32_t>(group, rows, words);
}

template <Way way>
void move_values(const KvLayout& layout, std::int64_t dim, std::byte* group, std::byte* rows) {
  switch (layout.element_bytes) {
    case 1:
      return move_values<way, std::uint8_t>(group, rows, layout, dim);
    case 2:
      return move_values<way, std::uint16_t>(group, rows, layout, dim);
    default:
      return move_values<way, std::uint32_t>(group, rows, layout, dim);
  }
}

template <Way way>
void move_block(const KvLayer& cache, std::int64_t number, std::byte* outside) {
  const KvSpec& spec = cache.spec;
  const KvLayout layout(spec);
  std::byte* block = cache.data + number * cache.stride_bytes;
  const std::int64_t row_bytes = spec.head_dim * layout.element_bytes;
  const std::int64_t parts = kv_exchange_parts(spec);
  const std::int64_t each = std::int64_t{spec.kv_heads} * spec.block_size;  // vectors of keys, and of values
  auto* scales = outside + parts * each * row_bytes;                        // i8 alone
  constexpr std::int64_t kScale = sizeof(float);
  for (std::int64_t head = 0; head < spec.kv_heads; ++head)
    for (std::int64_t group = 0; group < layout.groups; ++group) {
      const std::int64_t vector = head * spec.block_size + group * kGroupTokens;
      move_keys<way>(layout, spec.head_dim, block + layout.keys(head, group), outside + vector * row_bytes);
      if (parts > 1)
        move_values<way>(layout, spec.head_dim, block + layout.values(head, group),
                         outside + (each + vector) * row_bytes);
      if (spec.dtype != DType::i8) continue;
      for (std::int64_t which = 0; which < parts; ++which) {
        std::byte* inside = block + layout.scales(head, group) + which * kGroupTokens * kScale;
        std::byte* there = scales + (which * each + vector) * kScale;
        std::memcpy(way == Way::out ? there : inside, way == Way::out ? inside : there,
                    kGroupTokens * kScale);
      }
    }
}

}  // namespace

const KvExchange kKvExchange{
    .export_block = [](const KvLayer& cache, std::int64_t block,
                       std::span<std::byte> out) { move_block<Way::out>(cache, block, out.data()); },
    .import_block =
        [](const KvLayer& cache, std::int64_t block, std::span<const std::byte> bytes) {
          move_block<Way::in>(cache, block, const_cast<std::byte*>(bytes.data()));  // which is only read
        }};

}  // namespace octavo::cpu
