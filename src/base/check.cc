#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace octavo {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "octavo: bug at %s:%d: CHECK(%s) failed%s%s\n", file, line, condition,
               detail.empty() ? "" : ": ", detail.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace octavo
