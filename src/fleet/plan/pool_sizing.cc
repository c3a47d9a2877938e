#include "fleet/plan/pool_sizing.h"

#include <utility>

namespace octavo::fleet {

Result<std::optional<PoolSizing>> size_pools(SimulationOptions options, const Trace& trace, const Slo& slo,
                                             int most, const TrialProgress& progress) {
  const auto attempt = [&](int prefill, int decode) {
    options.prefill.replicas = prefill;
    options.replicas = decode;
    return try_fleet(options, trace, slo, progress);
  };
  const auto smallest = [&](auto&& fleet) {
    return smallest_that(1, most - 1, [&](int replicas) -> Result<bool> {
      TRY(const Trial trial, fleet(replicas));
      return trial.meets_slo;
    });
  };
  if (most < 2) return std::nullopt;
  TRY(const int least_decode, smallest([&](int replicas) { return attempt(most - 1, replicas); }));
  if (least_decode >= most) return std::nullopt;
  TRY(const int least_prefill, smallest([&](int replicas) { return attempt(replicas, most - 1); }));
  if (least_prefill >= most) return std::nullopt;
  for (int all = least_prefill + least_decode; all <= most; ++all)
    for (int prefill = least_prefill; prefill <= all - least_decode; ++prefill) {
      TRY(Trial trial, attempt(prefill, all - prefill));
      if (trial.meets_slo) return PoolSizing{prefill, all - prefill, std::move(trial)};
    }
  return std::nullopt;
}

}  // namespace octavo::fleet
