// Converts vocabularies that list each token's bytes by rank (tiktoken) to byte-level BPE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// Returns the bytes in byte-level form: each byte without a visible character is replaced by another
// character.
std::string written(std::string_view bytes);

// Returns all merges of two tokens into a third one. `tokens` is ordered by rank.
std::vector<std::string> merges_of(std::span<const std::string> tokens);

}  // namespace octavo
