// Codebooks of GGUF's IQ formats: the groups of magnitudes that neighbouring weights can have.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

// Entries of 8 numbers, 2 bits each; the first number is in the lowest bits. The bits are the index in the
// list of numbers: {8, 25, 43} for IQ2, {-1, 0, 1} for IQ1.
extern const std::array<std::uint16_t, 256> kIq2Xxs;
extern const std::array<std::uint16_t, 512> kIq2Xs;
extern const std::array<std::uint16_t, 1024> kIq2S;
extern const std::array<std::uint16_t, 2048> kIq1;

// Entries of 4 numbers, 3 bits each. The lists are {4, 12, 20, 28, 36, 44, 52, 62} and {1, 3, .. 15}.
extern const std::array<std::uint16_t, 256> kIq3Xxs;
extern const std::array<std::uint16_t, 512> kIq3S;

}  // namespace octavo
