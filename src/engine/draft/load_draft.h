// Loads the drafter that the speculative options select, on the backend of the engine's model.
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

// A draft model, a draft head or heads for each position, complete except for the KV cache.
struct LoadedDraft {
  std::unique_ptr<LocalExecutor> executor = {};
  std::unique_ptr<PlaceHeads> place_heads = {};  // used instead of the executor
  std::vector<CacheGroup> groups = {};
  std::int64_t block_bytes = 0;
  int max_tokens = 0;                     // maximum in a pass
  std::vector<std::int32_t> tokens = {};  // only for heads: see Drafter
  int own_blocks = 0;                     // only for heads: see DraftHeadLimits::own_blocks

  const Model& model() const { return executor ? executor->model() : place_heads->model(); }
  std::int64_t later_bytes() const { return executor ? executor->later_bytes() : 0; }
};

// Loads the draft model. target: the engine's model, whose options are the defaults of the draft model's
// options. Returns the errors of Model::load, and an error if the draft model does not generate text, has
// recurrent layers, or has another vocabulary.
Result<LoadedDraft> load_draft(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                               const ModelSpec& target, const SchedulerOptions& scheduler);

// Loads the draft head. target: the engine's model, which must live longer; the head uses its cache layout.
// Returns the errors of drafter.h, and an error for unsupported features of heads.
Result<Drafter> load_drafter(Backend& backend, const EngineOptions& options, const Model& target,
                             const CacheLayout& layout);
// Loads the draft head and allocates its workspaces.
Result<LoadedDraft> prepare_head(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                                 Drafter drafter, const SchedulerOptions& scheduler);

// Loads one head for each position of a draft. target: the engine's model, which must live longer. Returns
// the errors of place_heads.h, and an error if there are fewer heads than draft tokens.
Result<LoadedDraft> load_place_heads(Backend& backend, const EngineOptions& options, const Model& target);

// Allocates the drafter's cache and creates the proposer. target: the engine's executor, which must live
// longer. draft: only for methods with a model or heads. Returns an error if memory does not suffice.
Result<std::unique_ptr<Proposer>> make_proposer(const std::shared_ptr<Backend>& backend,
                                                const SpeculativeOptions& options,
                                                const LocalExecutor& target, std::optional<LoadedDraft> draft,
                                                const SchedulerOptions& scheduler);

// Returns the default for the number of tokens that a step computes in about the time of one token, if it is
// not measured.
int usual_free_tokens(const Device& device);

// Creates the policy for the number of draft tokens. times: durations measured so far.
DraftPolicy draft_policy(const SpeculativeOptions& options, int block_size, int free_tokens,
                         const StepTimes& times = {});

}  // namespace octavo
