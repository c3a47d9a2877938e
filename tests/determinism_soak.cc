// determinism_soak [pairs] [seed]: compares until so many pairs are done, prints what it saw.
#include <fmt/format.h>

#include <cstdlib>

#include "determinism.h"

int main(int argc, char** argv) {
  using namespace octavo;
  const std::int64_t pairs = argc > 1 ? std::atoll(argv[1]) : 10'000;
  auto seed = argc > 2 ? static_cast<std::uint32_t>(std::atoll(argv[2])) : 1;
  Report total;
  for (; total.pairs < pairs && total.differences == 0; ++seed)
    for (const Level& level : levels()) {
      const Report report = check_determinism(level, 140, seed);
      fmt::print("{}, seed {}: {} pairs, {} differences, {} preemptions\n", name(level), seed, report.pairs,
                 report.differences, report.preemptions);
      total.add(report);
    }
  for (const std::string& example : total.examples) fmt::print("{}\n", example);
  fmt::print("{} pairs, {} differences, {} preemptions\n", total.pairs, total.differences, total.preemptions);
  return total.differences == 0 ? 0 : 1;
}
