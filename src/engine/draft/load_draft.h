// Loads the drafter that --speculative-config selects, on the backend of the target model.
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
#include "model/position_heads.h"
#include "schedule/options.h"

namespace octavo {

// A loaded draft model, draft head or set of position heads. Only the KV cache is missing.
struct LoadedDraft {
  std::unique_ptr<LocalExecutor> executor = {};
  std::unique_ptr<PositionHeads> position_heads = {};  // used instead of the executor
  std::vector<CacheGroup> groups = {};
  std::int64_t block_bytes = 0;
  int max_tokens = 0;
  std::vector<std::int32_t> tokens = {};  // heads only, see Drafter
  int own_blocks = 0;                     // heads only, see DraftHeadLimits::own_blocks

  const Model& model() const { return executor ? executor->model() : position_heads->model(); }
  std::int64_t later_bytes() const { return executor ? executor->later_bytes() : 0; }
};

// Loads the draft model. `target` is the spec of the target model, whose options are the defaults. Returns
// the errors of Model::load, and an error if the draft model does not generate text, has recurrent layers,
// or has another vocabulary.
Result<LoadedDraft> load_draft(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                               const ModelSpec& target, const SchedulerOptions& scheduler);

// Loads the draft head. The head uses the cache layout of the target model, which must outlive the head.
// Returns the errors of drafter.h, and an error for unsupported features of heads.
Result<Drafter> load_drafter(Backend& backend, const EngineOptions& options, const Model& target,
                             const CacheLayout& layout);
Result<LoadedDraft> prepare_head(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                                 Drafter drafter, const SchedulerOptions& scheduler);

// Loads one head for each position of a draft. The target model must outlive the heads. Returns the errors
// of position_heads.h, and an error if there are fewer heads than draft tokens.
Result<LoadedDraft> load_position_heads(Backend& backend, const EngineOptions& options, const Model& target);

// Creates the proposer and allocates its cache. `target` is the executor of the target model and must
// outlive the proposer. `draft` is used only by methods with a model or heads. Returns an error if there is
// not enough memory.
Result<std::unique_ptr<Proposer>> make_proposer(const std::shared_ptr<Backend>& backend,
                                                const SpeculativeOptions& options,
                                                const LocalExecutor& target, std::optional<LoadedDraft> draft,
                                                const SchedulerOptions& scheduler);

// Returns the default of DraftPolicyOptions::free_tokens for devices on which it is not measured.
int usual_free_tokens(const Device& device);

// `times` are the step times measured so far.
DraftPolicy draft_policy(const SpeculativeOptions& options, int block_size, int free_tokens,
                         const StepTimes& times = {});

}  // namespace octavo
