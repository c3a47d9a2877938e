// Tables that map the code of a quantised weight to its value. This header must contain only data: files that
// are compiled for one instruction set (AVX2, ..) include it, and the linker could use their copy of a
// function on every CPU.
#pragma once

#include <cstdint>

namespace octavo {

enum class CodeValues : std::uint8_t {
  codes,    // the value is the code itself
  iq4,      // IQ4_NL and IQ4_XS; the entry is the value + 128
  e2m1,     // sign bit, 2 exponent bits, 1 fraction bit; the entry is 2 * value + 12
  iq3_xxs,  // sign bit, 3 bits of magnitude; the entry is the value + 64
  iq3_s,    // sign bit, 3 bits of magnitude; the entry is the value + 16
  iq2,      // sign bit, 2 bits of magnitude; the entry is the value + 44
  sign,     // one bit: 0 is -1, 1 is 1; the entry is the value + 1
  iq1,      // sign bit of a shift by 1/8, 2 bits for -1, 0 or 1; the entry is 8 * (number + shift) + 9
};

// Indexed by CodeValues, then by code. The codes of iq2 and iq1 have 3 bits, so they use only the first 8
// entries; those of sign have 1 bit.
alignas(16) inline constexpr std::uint8_t kCodeValues[][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0},
    {68, 76, 84, 92, 100, 108, 116, 126, 60, 52, 44, 36, 28, 20, 12, 2},
    {17, 19, 21, 23, 25, 27, 29, 31, 15, 13, 11, 9, 7, 5, 3, 1},
    {52, 69, 87, 44, 36, 19, 1, 44},
    {0, 2},
    {2, 10, 18, 9, 0, 8, 16, 9},
};

}  // namespace octavo
