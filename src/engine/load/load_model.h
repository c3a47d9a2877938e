// Loads a model, or a rank's part of it, on its device: everything except the KV cache.
#pragma once

#include <memory>
#include <optional>

#include "engine/draft/load_draft.h"
#include "engine/engine_options.h"
#include "engine/execute/local_executor.h"
#include "engine/execute/ranked_executor.h"
#include "engine/execute/ranks.h"
#include "engine/load/engine_plan.h"
#include "engine/load/load.h"

namespace octavo {

struct LoadedModel {
  std::unique_ptr<LocalExecutor> executor;
  ModelPlanFigures figures;
  Hash128 content = {};  // identity of the keys and values; set only with LoadHooks::kept_memory
  std::optional<Drafter> drafter = {};
  // layouts of the caches of all ranks, if blocks may be exported
  std::optional<RankCaches> rank_caches = {};
};

// ranks: null if there is a single rank. device_ranks: see LocalExecutor::create.
Result<LoadedModel> load_model(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                               const LoadHooks& hooks, const Ranks* ranks, DeviceGroups device_ranks);

// Returns the options for loading the whole model on any device.
Result<LoadOptions> load_options(const EngineOptions& options);

}  // namespace octavo
