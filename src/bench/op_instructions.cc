// Runs each operator once, so that tools/instructions.py counts the operator's instructions under
// callgrind. The program uses AVX2, the highest level that valgrind supports; with --tiles, it counts only
// instructions on emulated matrix tiles. One thread and small matrices suffice, because the number of
// instructions per output element does not depend on the size.
#include <fmt/format.h>
#include <valgrind/callgrind.h>

#include "bench/op_cases.h"
#include "kernels/backends.h"
#if defined(__x86_64__)
#include "kernels/cpu/matrix_tiles.h"
#endif

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

std::string name_of(const OpCase& c) { return fmt::format("{} | {} | {}", c.operation, c.shape, c.format); }

Result<> count() {
  TRY(Backend backend, make_cpu_backend({.threads = 1, .isa = CpuIsa::avx2}));
  const OpVisitor visitor{.wanted = is_counted,
                          .measure =
                              [](const OpCase& c) {
                                const std::string name = name_of(c);
                                // not counted, because the first run includes work that is needed only once
                                c.run();
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

#if defined(__x86_64__)
Result<> count_on_tiles() {
  TRY(Backend backend, make_cpu_backend({.threads = 1, .isa = CpuIsa::amx_modelled}));
  const OpVisitor visitor{.wanted = is_counted,
                          .measure =
                              [](const OpCase& c) {
                                const std::int64_t before = cpu::modelled_tile_instructions();
                                c.run();
                                const std::int64_t counted = cpu::modelled_tile_instructions() - before;
                                if (counted > 0) fmt::print("{:12}  tiles: {}\n", counted, name_of(c));
                              },
                          .cold_bytes = 0};
  for (const auto part : kOpCaseParts) TRY_VOID(part(backend, kSmall, visitor));
  return {};
}
#else
Result<> count_on_tiles() {
  return failure(ErrorCode::unsupported, "only x86-64 processors have matrix tiles");
}
#endif

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  const bool tiles = argc == 2 && std::string_view(argv[1]) == "--tiles";
  const auto done = tiles ? octavo::count_on_tiles() : octavo::count();
  if (!done) fmt::print(stderr, "op_instructions: {}\n", done.error().message);
  return done ? 0 : 1;
}
