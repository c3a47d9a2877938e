#include "local/share_host.h"

#include <ranges>

#include "base/log.h"
#include "base/processors.h"

namespace octavo {

Result<> take_processors(EngineOptions& engine, NumaOptions numa, const hub::Environment& environment) {
  // Values: "auto", "nobind" or "0-3|4-7".
  const std::string bound = environment("VLLM_CPU_OMP_THREADS_BIND");
  if (bound == "nobind") {
    numa.bind = false;
  } else if (!bound.empty() && bound != "auto" && numa.processors.empty()) {
    for (const auto list : bound | std::views::split('|'))
      numa.processors.emplace_back(list.begin(), list.end());
  }
  if (engine.parallel.mpi) numa.bind = false;
  const int processes = engine.parallel.data_parallel_size * engine.parallel.ranks_of_host();
  TRY(engine.device.processors, share_processors(numa, processes, numa_nodes()));
  if (!engine.device.processors.empty()) log_info("processors of each process: {}", engine.device.processors);
  return {};
}

}  // namespace octavo
