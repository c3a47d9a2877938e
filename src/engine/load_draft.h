// From speculative options to what guesses: a draft model is loaded beside the engine's own, on its backend.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"
#include "engine/local_executor.h"
#include "kv/kv_cache.h"
#include "schedule/options.h"
#include "speculate/guess_policy.h"
#include "speculate/proposer.h"

namespace octavo {

// A draft model with everything but its KV cache.
struct LoadedDraft {
  std::unique_ptr<LocalExecutor> executor = {};
  std::vector<CacheGroup> groups = {};
  std::int64_t block_bytes = 0;
  int max_tokens = 0;  // of a pass
};

// target: the engine's model, whose options the draft model shares where it has none of its own. Errors:
// those of Model::load; a draft model that does not generate, has recurrent layers or another vocabulary.
Result<LoadedDraft> load_draft(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                               const ModelSpec& target, const SchedulerOptions& scheduler);

// draft: of the method draft_model; its cache is allocated here. Error: there is not enough memory.
Result<std::unique_ptr<Proposer>> make_proposer(const SpeculativeOptions& options,
                                                std::optional<LoadedDraft> draft,
                                                const SchedulerOptions& scheduler);

// How many guesses a sequence gets on this device.
GuessPolicy guess_policy(const SpeculativeOptions& options, const Device& device);

}  // namespace octavo
