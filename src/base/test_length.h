// For tests: how much of a test with many cases runs. `make test-long` sets OCTAVO_LONG_TESTS.
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

// Rounds of a test with random cases: `all` in its long form, else one in `one_of`.
inline int rounds(int all, int one_of) { return long_tests() ? all : std::max(1, all / (one_of * kFewer)); }

// For tests that cross a list of cases with a list of ways: whether this pair runs. In the short form each case has one way in
// `one_of`, and other cases have the others.
inline bool chosen(const std::string& name, std::size_t way, std::size_t one_of) {
  return long_tests() || (std::hash<std::string>()(name) + way) % (one_of * kFewer) == 0;
}

}  // namespace octavo
