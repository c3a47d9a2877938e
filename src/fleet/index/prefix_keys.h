// Prefix keys of a prompt: a 64-bit key for each block of tokens, which depends on the block and on all
// earlier blocks.
// The formula is that of llm-d's approximate prefix plugin, so both programs find the same prefixes:
// key[-1] = XXH64(model || salt), key[i] = XXH64(XXH64(tokens of block i) || key[i-1]), with seed 0, little
// endian.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace octavo::fleet {

using PrefixKey = std::uint64_t;

// Returns the parent key of block 0. The key depends on the model and the salt.
PrefixKey first_key(std::string_view model, std::string_view salt);

PrefixKey next_key(PrefixKey parent, std::span<const std::uint32_t> block);

// Computes the keys of all blocks. If `partial` is set, an incomplete last block also gets a key.
void prefix_keys(PrefixKey first, std::span<const std::uint32_t> tokens, int block_size, bool partial,
                 std::vector<PrefixKey>& keys);

}  // namespace octavo::fleet
