#include "engine/load/model_figures.h"

#include "model/inspect.h"

namespace octavo {

ModelFigures model_figures(const ModelSpec& spec) {
  constexpr int kElementBytes = 2;
  const PassCost one = pass_cost(spec, 1, 1, kElementBytes, kElementBytes);
  const PassCost two = pass_cost(spec, 1, 2, kElementBytes, kElementBytes);
  const double pair = two.operations - one.operations;
  return {.weight_bytes = static_cast<double>(count_parameters(spec).total) * kElementBytes,
          .operations_per_token = one.operations - pair,
          .operations_per_pair = pair,
          .kv_bytes_per_token = two.bytes - one.bytes};
}

}  // namespace octavo
