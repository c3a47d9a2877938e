// Vocabularies that list the bytes of their tokens by rank, as tiktoken has them, in the words of byte-level BPE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// As byte-level vocabularies are written: bytes that are no visible characters have others.
std::string written(std::string_view bytes);

// Every way to make a token out of two others, the tokens by rank.
std::vector<std::string> merges_of(std::span<const std::string> tokens);

}  // namespace octavo
