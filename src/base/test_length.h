// For tests: how many cases of a long test run. `make test-long` sets OCTAVO_LONG_TESTS.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace octavo {

inline bool long_tests() { return std::getenv("OCTAVO_LONG_TESTS") != nullptr; }

// Number of random rounds: `all` in a long run, else all / one_of.
inline int rounds(int all, int one_of) { return long_tests() ? all : std::max(1, all / one_of); }

}  // namespace octavo
