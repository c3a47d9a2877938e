// Converts tiktoken vocabularies, which list the bytes of each token by rank, to byte-level BPE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// Returns the bytes as byte-level BPE writes them: each byte becomes a visible character.
std::string written(std::string_view bytes);

// Returns all merges of two tokens into a third token. tokens: ordered by rank.
std::vector<std::string> merges_of(std::span<const std::string> tokens);

}  // namespace octavo
