// Sizes of memory pages, in bytes, as on x86-64 and on most ARM machines.
#pragma once

#include <cstddef>

namespace octavo {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace octavo
