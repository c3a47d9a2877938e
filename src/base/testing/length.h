// For tests: the number of cases that a long test runs. `make test-long` sets OCTAVO_LONG_TESTS.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>

namespace octavo {

// Factor by which sanitizers reduce the number of cases: tests take several times as long, and one case of
// each kind shows what a sanitizer can find.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kFewer = 4;
#else
inline constexpr int kFewer = 1;
#endif

inline bool long_tests() { return std::getenv("OCTAVO_LONG_TESTS") != nullptr; }

// Number of random rounds: `all` in a long run, otherwise all / one_of.
inline int rounds(int all, int one_of) { return long_tests() ? all : std::max(1, all / (one_of * kFewer)); }

// For tests that combine cases with variants: returns true if this pair runs. In a short run, each case runs
// with one of `one_of` variants; different cases run with different variants.
inline bool chosen(const std::string& name, std::size_t way, std::size_t one_of) {
  return long_tests() || (std::hash<std::string>()(name) + way) % (one_of * kFewer) == 0;
}

}  // namespace octavo
