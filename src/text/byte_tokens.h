// Converts vocabularies that list token bytes by rank (tiktoken) to byte-level BPE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// The bytes in byte-level form: bytes without a visible character get another one.
std::string written(std::string_view bytes);

// Every way to make a token out of two others, the tokens by rank.
std::vector<std::string> merges_of(std::span<const std::string> tokens);

}  // namespace octavo
