// Codebooks of GGUF's IQ formats. An entry gives the magnitudes of 4 or 8 neighbouring weights.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

// An entry has 8 numbers of 2 bits; the first number is in the lowest bits. A number is an index into {8, 25,
// 43} (IQ2) or {-1, 0, 1} (IQ1).
extern const std::array<std::uint16_t, 256> kIq2Xxs;
extern const std::array<std::uint16_t, 512> kIq2Xs;
extern const std::array<std::uint16_t, 1024> kIq2S;
extern const std::array<std::uint16_t, 2048> kIq1;

// An entry has 4 numbers of 3 bits. A number is an index into {4, 12, 20, 28, 36, 44, 52, 62} (IQ3_XXS) or
// {1, 3, .. 15} (IQ3_S).
extern const std::array<std::uint16_t, 256> kIq3Xxs;
extern const std::array<std::uint16_t, 512> kIq3S;

}  // namespace octavo
