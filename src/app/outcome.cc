#include <fmt/format.h>

#include <cstdio>

#include "app/commands.h"

namespace octavo {

void Outcome::report(const Error& error) {
  fmt::print(stderr, "octavo: {}{}{}\n", error.field, error.field.empty() ? "" : ": ", error.message);
  const bool callers = error.code == ErrorCode::invalid_argument || error.code == ErrorCode::not_found ||
                       error.code == ErrorCode::unsupported || error.code == ErrorCode::corrupt;
  exit_code = callers ? 2 : 1;
}

}  // namespace octavo
