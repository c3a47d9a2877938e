// Removes values of masked tokens. A masked token has probability 0, but 0 times infinity or NaN is NaN.
// Infinities and NaNs occur in slots that were never written, and in later tokens whose values overflowed.
#include <cstring>

#include "kernels/cpu/attention_unit.h"

namespace octavo::cpu {
namespace {

// Returns true if no word has all bits of `bits` set.
template <class Word>
bool none_has(const std::byte* data, std::int64_t bytes, Word bits) {
  const auto* words = reinterpret_cast<const Word*>(data);
  Word found = 0;
  for (std::int64_t i = 0; i < bytes / static_cast<std::int64_t>(sizeof(Word)); ++i)
    found = static_cast<Word>(found | ((words[i] & bits) == bits ? 1 : 0));
  return found == 0;
}

bool all_finite(DType dtype, const std::byte* data, std::int64_t bytes) {
  switch (dtype) {
    case DType::f32:
      return none_has<std::uint32_t>(data, bytes, 0x7f800000u);
    case DType::bf16:
      return none_has<std::uint16_t>(data, bytes, 0x7f80);
    case DType::f16:
      return none_has<std::uint16_t>(data, bytes, 0x7c00);
    case DType::f8_e4m3:
      return none_has<std::uint8_t>(data, bytes, 0x7f);
    default:
      return true;
  }
}

}  // namespace

// Returns true if the values are finite in all groups that only some rows see. Groups that every row sees
// need no check.
bool AttentionUnitRun::finite(std::int64_t head, const Groups& groups) const {
  const KvLayout& layout = kv_.layout;
  for (std::int64_t g = groups.begin; g < groups.end; ++g) {
    if (groups.whole(g)) continue;
    if (!all_finite(kv_.dtype, values(head, g), layout.value_group_bytes)) return false;
  }
  return true;
}

// Recomputes the weighted sum of a row, with zeros as the values of masked tokens. The order of additions
// does not change.
void AttentionUnitRun::mix_clean(std::int64_t piece, const Groups& groups, std::int64_t head,
                                 std::int64_t row) {
  const KvLayout& layout = kv_.layout;
  const std::int64_t width = 2 * call_.kernels.lanes;
  for (std::int64_t g = groups.begin; g < groups.end; ++g) {
    const std::int64_t first = piece * kPieceTokens + g * kGroupTokens;
    const std::byte* w = clean(head, g, row_[row].begin - first, row_[row].end - first);
    for (std::int64_t d = 0; d < layout.padded_dim; d += width)
      mix_function(1)({
          .x = scratch_.p + (at(head, row) * kScoreStride + g * kGroupTokens) * call_.x_bytes(),
          .x_row_stride = 0,
          .x_unit_stride = 4,
          .w = &w,
          .segments = 1,
          .w_offset = d * layout.unit * layout.element_bytes,
          .steps = kGroupTokens / layout.unit,
          .step_stride = layout.padded_dim * layout.unit * layout.element_bytes,
          .vector_stride = d + call_.kernels.lanes < layout.padded_dim ? vector_bytes() : 0,
          .c = scratch_.piece_values + at(head, row) * c_stride() + d,
          .c_stride = c_stride(),
          .accumulate = g > groups.begin,
      });
  }
}

// Copies the values of a group, with zeros for tokens outside [begin, end).
const std::byte* AttentionUnitRun::clean(std::int64_t head, std::int64_t g, std::int64_t begin,
                                         std::int64_t end) {
  if (begin <= 0 && end >= kGroupTokens) return values(head, g);
  const KvLayout& layout = kv_.layout;
  std::memcpy(scratch_.cleaned, values(head, g), static_cast<std::size_t>(layout.value_group_bytes));
  for (std::int64_t token = 0; token < kGroupTokens; ++token) {
    if (token >= begin && token < end) continue;
    for (std::int64_t d = 0; d < layout.padded_dim; ++d)
      std::memset(scratch_.cleaned + layout.value(token, d), 0,
                  static_cast<std::size_t>(layout.element_bytes));
  }
  return scratch_.cleaned;
}

}  // namespace octavo::cpu
