// determinism_soak [pairs] [seed] [model ..]: compares `pairs` pairs of outputs and prints statistics. The
// models are the demo model in other formats; by default the demo model itself.
#include <fmt/format.h>

#include <cstdlib>
#include <span>

#include "determinism.h"

int main(int argc, char** argv) {
  using namespace octavo;
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  const std::int64_t pairs = argc > 1 ? std::atoll(arguments[1]) : 10'000;
  auto seed = argc > 2 ? static_cast<std::uint32_t>(std::atoll(arguments[2])) : 1;
  std::vector<std::string> models;
  for (std::size_t i = 3; i < arguments.size(); ++i) models.emplace_back(arguments[i]);
  if (models.empty()) models.emplace_back(kDemoModel);

  Report total;
  for (; total.pairs < pairs && total.differences == 0; ++seed)
    for (const std::string& model : models)
      for (const Level& level : levels()) {
        const bool other = model != kDemoModel;
        if (other && (level.quantization != Encoding::plain || level.dtype == ModelDType::float32)) continue;
        const Report report = check_determinism(level, other ? 40 : 140, seed, model);
        fmt::print("{}, {}, seed {}: {} pairs, {} differences, {} preemptions\n", model, name(level), seed,
                   report.pairs, report.differences, report.preemptions);
        total.add(report);
      }
  for (const std::string& example : total.examples) fmt::print("{}\n", example);
  fmt::print("{} pairs, {} differences, {} preemptions\n", total.pairs, total.differences, total.preemptions);
  return total.differences == 0 ? 0 : 1;
}
