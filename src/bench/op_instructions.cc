// Runs each operator once, for callgrind to count its instructions: tools/instructions.py. At AVX2, the
// highest level that valgrind knows, on one thread and on small shapes: what a kernel executes for a number
// of a product is the same on large ones.
#include <fmt/format.h>
#include <valgrind/callgrind.h>

#include "bench/op_cases.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

constexpr OpShapes kSmall{"small", 512, 8, 2, 64, 1024, 4096};

bool is_counted(const OpCase& c) {
  const auto is = [&](std::string_view word) { return c.operation.find(word) != c.operation.npos; };
  const auto begins = [&](auto... begin) { return (c.shape.starts_with(begin) || ...); };
  if (is("matmul")) return is("down") && begins("1 x", "16 x", "64 x");
  if (is("attention")) return is("shared") || begins("1 x 1 of 4096", "16 x 1 of 32", "1 x 512 of 512");
  return begins("1 ", "16 ");
}

Result<> count() {
  TRY(Backend backend, make_cpu_backend({.threads = 1, .isa = CpuIsa::avx2}));
  const OpVisitor visitor{.wanted = is_counted,
                          .measure =
                              [](const OpCase& c) {
                                const std::string name =
                                    fmt::format("{} | {} | {}", c.operation, c.shape, c.format);
                                c.run();  // whatever happens only once
                                CALLGRIND_ZERO_STATS;
                                CALLGRIND_TOGGLE_COLLECT;
                                c.run();
                                CALLGRIND_TOGGLE_COLLECT;
                                CALLGRIND_DUMP_STATS_AT(name.c_str());
                              },
                          .cold_bytes = 0};
  for (const auto part : kOpCaseParts) TRY_VOID(part(backend, kSmall, visitor));
  return {};
}

}  // namespace
}  // namespace octavo

int main() {
  const auto done = octavo::count();
  if (!done) fmt::print(stderr, "op_instructions: {}\n", done.error().message);
  return done ? 0 : 1;
}
