// Keys of a prompt's prefixes: a 64-bit key for each block of tokens, which depends on all blocks before it.
// The hashes are those of llm-d's approximate prefix plugin, so both programs find the same prefixes: first =
// XXH64(model || salt); key[i] = XXH64(XXH64(tokens of block i) || key[i-1]), seed 0, little endian.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace octavo::fleet {

using PrefixKey = std::uint64_t;

// Returns the key before the first block. It differs between models and between salts.
PrefixKey first_key(std::string_view model, std::string_view salt);

PrefixKey next_key(PrefixKey parent, std::span<const std::uint32_t> block);

// Computes the keys of all blocks. partial: an incomplete last block gets a key, too.
void prefix_keys(PrefixKey first, std::span<const std::uint32_t> tokens, int block_size, bool partial,
                 std::vector<PrefixKey>& keys);

}  // namespace octavo::fleet
