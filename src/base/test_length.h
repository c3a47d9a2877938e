// For tests: how much of a test with many cases runs. `make test-long` sets OCTAVO_LONG_TESTS.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace octavo {

inline bool long_tests() { return std::getenv("OCTAVO_LONG_TESTS") != nullptr; }

// Rounds of a test with random cases: `all` in its long form, else one in `one_of`.
inline int rounds(int all, int one_of) { return long_tests() ? all : std::max(1, all / one_of); }

}  // namespace octavo
