// Tables from the code of a weight to its value. Source files of single instruction sets include this header,
// so it contains only data.
#pragma once

#include <cstdint>

namespace octavo {

enum class CodeValues : std::uint8_t {
  codes,    // the code is the value
  iq4,      // IQ4_NL and IQ4_XS: 16 values, 128 added to each
  e2m1,     // 1 sign bit, 2 exponent bits, 1 fraction bit; doubled, then 12 added
  iq3_xxs,  // 3 bits of magnitude, 1 sign bit; 64 added
  iq3_s,    // same as iq3_xxs, with 16 added
  iq2,      // 2 bits of magnitude, 1 sign bit; 44 added
  iq1,      // 2 bits of the number -1, 0 or 1, 1 bit of the shift by 1/8; times 8, then 9 added
};

// Indexed by CodeValues. Some codes are not used.
alignas(16) inline constexpr std::uint8_t kCodeValues[][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0},
    {68, 76, 84, 92, 100, 108, 116, 126, 60, 52, 44, 36, 28, 20, 12, 2},
    {17, 19, 21, 23, 25, 27, 29, 31, 15, 13, 11, 9, 7, 5, 3, 1},
    {52, 69, 87, 44, 36, 19, 1, 44},
    {2, 10, 18, 9, 0, 8, 16, 9},
};

}  // namespace octavo
