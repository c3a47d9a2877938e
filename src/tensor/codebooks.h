// Codebooks of GGUF's IQ formats. An entry gives the magnitudes of 4 or 8 neighbouring weights.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

// Entries of 8 numbers, 2 bits each; the first number is in the lowest bits. The 2 bits are an index into
// the list {8, 25, 43} for IQ2, or {-1, 0, 1} for IQ1.
extern const std::array<std::uint16_t, 256> kIq2Xxs;
extern const std::array<std::uint16_t, 512> kIq2Xs;
extern const std::array<std::uint16_t, 1024> kIq2S;
extern const std::array<std::uint16_t, 2048> kIq1;

// Entries of 4 numbers, 3 bits each. The 3 bits are an index into the list {4, 12, 20, 28, 36, 44, 52, 62}
// for IQ3_XXS, or {1, 3, .. 15} for IQ3_S.
extern const std::array<std::uint16_t, 256> kIq3Xxs;
extern const std::array<std::uint16_t, 512> kIq3S;

}  // namespace octavo
