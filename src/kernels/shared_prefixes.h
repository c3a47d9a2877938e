// Finds the sequences of a step that begin with the same KV blocks. Attention then reads these blocks once
// for several sequences (cascade attention, FlashInfer, Ye et al., 2024).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

// Sequences whose first `pieces` pieces of keys are in the same blocks.
struct SharedPrefix {
  std::size_t begin, end;  // indices of the sequences, for SharedPrefixes::sequences()
  std::int32_t pieces;
};

// Call clear(), add() for each sequence, then find().
class SharedPrefixes {
 public:
  // Both sizes are in tokens. `sequences` is the maximum number of sequences; up to this number, no call
  // allocates memory.
  SharedPrefixes(int block_size, std::int64_t piece_tokens, std::size_t sequences);

  void clear();
  // `blocks` are the blocks that all queries of the sequence see completely. They must stay valid until
  // find() returns.
  void add(std::int32_t sequence, std::span<const std::int32_t> blocks);
  void find();

  // A prefix is before the longer prefixes that some of its sequences have in common. These have consecutive
  // indices in the range of the shorter prefix.
  std::span<const SharedPrefix> all() const { return prefixes_; }
  std::span<const std::int32_t> sequences(const SharedPrefix& prefix) const {
    return std::span(order_).subspan(prefix.begin, prefix.end - prefix.begin);
  }

 private:
  struct Candidate {
    std::int32_t sequence;
    std::span<const std::int32_t> blocks;
  };
  void split(std::size_t begin, std::size_t end, std::size_t blocks, std::int32_t pieces);
  std::size_t common_blocks(std::size_t begin, std::size_t end, std::size_t known) const;

  std::int64_t block_size_, piece_tokens_;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> order_;  // sequences of the candidates
  std::vector<SharedPrefix> prefixes_;
};

}  // namespace octavo
