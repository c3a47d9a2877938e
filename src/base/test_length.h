// For tests: how many cases of a long test run. `make test-long` sets OCTAVO_LONG_TESTS.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>

namespace octavo {

// Sanitized tests take several times as long, and one case of a kind shows what a sanitizer can see.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kFewer = 4;
#else
inline constexpr int kFewer = 1;
#endif

inline bool long_tests() { return std::getenv("OCTAVO_LONG_TESTS") != nullptr; }

// Number of random rounds: `all` in a long run, else all / one_of.
inline int rounds(int all, int one_of) { return long_tests() ? all : std::max(1, all / (one_of * kFewer)); }

// For tests that cross cases with variants: whether this pair runs. In a short run each case meets one
// variant in `one_of`, and other cases meet the other variants.
inline bool chosen(const std::string& name, std::size_t way, std::size_t one_of) {
  return long_tests() || (std::hash<std::string>()(name) + way) % (one_of * kFewer) == 0;
}

}  // namespace octavo
