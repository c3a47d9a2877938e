#include "kernels/shared_prefixes.h"

#include <algorithm>

namespace octavo {

SharedPrefixes::SharedPrefixes(int block_size, std::int64_t piece_tokens, std::size_t sequences)
    : block_size_(block_size), piece_tokens_(piece_tokens) {
  candidates_.reserve(sequences);
  order_.reserve(sequences);
  prefixes_.reserve(sequences);  // Each prefix divides the sequences further, so there are fewer prefixes.
}

void SharedPrefixes::clear() {
  candidates_.clear();
  order_.clear();
  prefixes_.clear();
}

void SharedPrefixes::add(std::int32_t sequence, std::span<const std::int32_t> blocks) {
  candidates_.push_back({sequence, blocks});
}

void SharedPrefixes::find() {
  split(0, candidates_.size(), 0, 0);
  for (const Candidate& candidate : candidates_) order_.push_back(candidate.sequence);
}

// Sorts the candidates [begin, end) by the block after their first `blocks` blocks, which are the same and
// have `pieces` pieces. Candidates with the same next block have a longer prefix in common.
void SharedPrefixes::split(std::size_t begin, std::size_t end, std::size_t blocks, std::int32_t pieces) {
  const auto next_block = [&](const Candidate& candidate) {
    return blocks < candidate.blocks.size() ? candidate.blocks[blocks] : -1;
  };
  const auto at = [&](std::size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::ranges::sort(at(begin), at(end), {}, next_block);
  for (std::size_t first = begin, past = begin; first < end; first = past) {
    const std::int32_t block = next_block(candidates_[first]);
    for (past = first + 1; past < end && next_block(candidates_[past]) == block;) ++past;
    if (block < 0 || past - first < 2) continue;
    const std::size_t common = common_blocks(first, past, blocks);
    const auto more =
        static_cast<std::int32_t>(static_cast<std::int64_t>(common) * block_size_ / piece_tokens_);
    if (more > pieces) prefixes_.push_back({first, past, more});
    split(first, past, common, more);
  }
}

// Returns the number of blocks with which all candidates [begin, end) begin. It is at least `known`.
std::size_t SharedPrefixes::common_blocks(std::size_t begin, std::size_t end, std::size_t known) const {
  std::span<const std::int32_t> common = candidates_[begin].blocks;
  for (std::size_t i = begin + 1; i < end; ++i) {
    const auto skip = static_cast<std::ptrdiff_t>(known);
    const auto alike = std::mismatch(common.begin() + skip, common.end(),
                                     candidates_[i].blocks.begin() + skip, candidates_[i].blocks.end());
    common = common.first(static_cast<std::size_t>(alike.first - common.begin()));
  }
  return common.size();
}

}  // namespace octavo
