// For tests: how many cases a long test runs. `make test-long` sets OCTAVO_LONG_TESTS.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>

namespace octavo {

// Sanitizers run fewer cases: tests take several times as long, and one case of each kind is enough to find
// errors.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kFewer = 4;
#else
inline constexpr int kFewer = 1;
#endif

inline bool long_tests() { return std::getenv("OCTAVO_LONG_TESTS") != nullptr; }

// Returns the number of cases to run: `all` in a long run, otherwise all / one_of; fewer under sanitizers.
inline int rounds(int all, int one_of) { return long_tests() ? all : std::max(1, all / (one_of * kFewer)); }

// For tests of all pairs of cases and variants: returns true if the pair runs. A short run tests each case
// with one of `one_of` variants.
inline bool chosen(const std::string& name, std::size_t way, std::size_t one_of) {
  return long_tests() || (std::hash<std::string>()(name) + way) % (one_of * kFewer) == 0;
}

}  // namespace octavo
