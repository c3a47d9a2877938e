// From speculative options to what proposes: a draft model is loaded beside the engine's own, on its backend.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "engine/draft/draft_policy.h"
#include "engine/draft/proposer.h"
#include "engine/engine_options.h"
#include "engine/execute/local_executor.h"
#include "kv/kv_cache.h"
#include "model/drafter.h"
#include "model/place_heads.h"
#include "schedule/options.h"

namespace octavo {

// A draft model, a head, or heads by place, with everything but its KV cache.
struct LoadedDraft {
  std::unique_ptr<LocalExecutor> executor = {};
  std::unique_ptr<PlaceHeads> place_heads = {};  // in place of the executor
  std::vector<CacheGroup> groups = {};
  std::int64_t block_bytes = 0;
  int max_tokens = 0;                     // of a pass
  std::vector<std::int32_t> tokens = {};  // of a head: see Drafter
  int own_blocks = 0;                     // of a head: DraftHeadLimits::own_blocks

  const Model& model() const { return executor ? executor->model() : place_heads->model(); }
  std::int64_t later_bytes() const { return executor ? executor->later_bytes() : 0; }
};

// target: the engine's model, whose options the draft model shares where it has none of its own. Errors:
// those of Model::load; a draft model that does not generate, has recurrent layers or another vocabulary.
Result<LoadedDraft> load_draft(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                               const ModelSpec& target, const SchedulerOptions& scheduler);

// The head that the options ask for. target: the engine's model, whose cache is laid out so; it lives longer.
// Errors: those of drafter.h; what heads cannot do yet.
Result<Drafter> load_drafter(Backend& backend, const EngineOptions& options, const Model& target,
                             const CacheLayout& layout);
// The same with its workspaces.
Result<LoadedDraft> prepare_head(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                                 Drafter drafter, const SchedulerOptions& scheduler);

// The heads by place that the options ask for. target: the engine's model, which lives longer. Errors: those
// of place_heads.h; fewer places than draft tokens.
Result<LoadedDraft> load_place_heads(Backend& backend, const EngineOptions& options, const Model& target);

// target: the engine's executor, which lives longer. draft: of methods that have one; its cache is allocated
// here. Error: there is not enough memory.
Result<std::unique_ptr<Proposer>> make_proposer(const std::shared_ptr<Backend>& backend,
                                                const SpeculativeOptions& options,
                                                const LocalExecutor& target, std::optional<LoadedDraft> draft,
                                                const SchedulerOptions& scheduler);

// How many tokens a step takes along for little more than the price of one, where that is not measured.
int usual_free_tokens(const Device& device);

// How many draft tokens a sequence gets. times: as far as they are known.
DraftPolicy draft_policy(const SpeculativeOptions& options, int block_size, int free_tokens,
                         const StepTimes& times = {});

}  // namespace octavo
