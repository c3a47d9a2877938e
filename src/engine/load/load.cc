#include "engine/load/load.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "engine/draft/load_draft.h"
#include "engine/execute/ranked_executor.h"
#include "engine/execute/ranks.h"
#include "engine/load/choose_device.h"
#include "engine/load/describe_model.h"
#include "engine/load/engine_plan.h"
#include "engine/load/free_tokens.h"
#include "engine/load/load_kept.h"
#include "engine/load/load_model.h"
#include "engine/load/load_simulated.h"
#include "engine/load/model_figures.h"
#include "engine/load/placement.h"
#include "model/support.h"

namespace octavo {
namespace {

Result<std::unique_ptr<Ranks>> start_ranks(const EngineOptions& options, const LoadHooks& hooks) {
  TRY_VOID(check_ranks(options));
  if (options.parallel.rank_layout().size() == 1 && !options.parallel.shares_experts()) return nullptr;
  return Ranks::start(options, hooks.rank_command);
}

// All ranks must call it. Returns the groups for values on the device, or nothing if the device shares the
// host's memory.
Result<DeviceGroups> groups_on_device(Backend& backend, const EngineOptions& options, Ranks* ranks) {
  if (ranks == nullptr || backend.device->shares_host_memory()) return DeviceGroups();
  TRY(DeviceGroups found, device_groups(backend, ranks->groups(), has_own_device(options, *backend.device),
                                        ranks->step_timeout_ms()));
  if (ranks->rank() == 0)
    log_info("{} ranks exchange values {}: {}", ranks->layout().size(),
             found.on_stream ? "on their GPUs" : "through host memory, so steps run without CUDA graphs",
             found.about);
  return found;
}

// Returns the name of the device without the number of threads, which does not affect outputs.
std::string device_name(const Backend& backend) {
  const std::string name = backend.device->name();
  const std::size_t threads = name.find(", ");
  return threads == std::string::npos ? name : name.substr(0, threads) + ")";
}

// Estimates the work of one rank. Assumes that each step reads the weights of all experts.
WorkFigures work_figures(const EngineOptions& options, const LoadedModel& loaded) {
  const Model& model = loaded.executor->model();
  ModelSpec whole = model.spec;
  whole.shard = {};
  whole.stage = {};
  const ModelFigures figures = model_figures(whole);
  const double ranks = options.parallel.rank_layout().size();
  return {.operations_per_token = figures.operations_per_token / ranks,
          .operations_per_pair = figures.operations_per_pair / ranks,
          .weight_bytes = static_cast<double>(model.weight_bytes),
          .kv_bytes_per_token = static_cast<double>(loaded.figures.block_bytes) / options.cache.block_size};
}

// Loads the draft model without its cache. The cache will have the same number of blocks as the cache of
// the target model.
Result<std::optional<LoadedDraft>> load_draft_of(const std::shared_ptr<Backend>& backend,
                                                 const EngineOptions& options, LoadedModel& target) {
  const SchedulerOptions step = plan_step(target.figures, options);
  std::optional<LoadedDraft> draft;
  if (options.speculation && options.speculation->draft_model() != nullptr) {
    TRY(draft, load_draft(backend, options, target.executor->model().spec, step));
  } else if (target.drafter) {
    TRY(draft, prepare_head(backend, options, *std::move(target.drafter), step));
  } else if (options.speculation && options.speculation->position_heads() != nullptr) {
    TRY(draft, load_position_heads(*backend, options, target.executor->model()));
  }
  return draft;
}

// Returns this rank's part of the free memory of its device, or the smallest part of any rank if ranks have
// separate devices, because all ranks have the same number of blocks. All ranks must call it.
Result<MemoryPlan> memory_of_ranks(const EngineOptions& options, const Device& device, Ranks* ranks) {
  MemoryPlan memory = memory_of(options, device);
  if (ranks != nullptr && !device.shares_host_memory()) {
    TRY(memory.available, ranks->least(memory.available));
  }
  return memory;
}

Result<MemoryFigures> measure_memory(const EngineOptions& options, LoadedModel& loaded,
                                     const std::optional<LoadedDraft>& draft, const KeptPlan& kept,
                                     Ranks* ranks) {
  LocalExecutor& executor = *loaded.executor;
  const Device& device = executor.device();
  // A pooling model has a small cache or none, so an estimate of later allocations suffices. Ranks use the
  // estimate, too, because all ranks would have to run the largest steps together.
  if (!device.shares_host_memory() && options.cache.memory_bytes == 0 && !options.cache.num_blocks &&
      !executor.pools() && ranks == nullptr)
    TRY_VOID(executor.rehearse());
  TRY(const MemoryPlan plan, memory_of_ranks(options, device, ranks));
  MemoryFigures memory{
      .memory = plan,
      .source_bytes = executor.source_bytes(),
      .draft_block_bytes = draft ? draft->block_bytes : 0,
      .steps_in_flight = std::max(executor.steps_in_flight(), options.parallel.pipeline_parallel_size)};
  memory.memory.available += kept.occupied_bytes();
  memory.memory.reserved = executor.later_bytes() + (draft ? draft->later_bytes() : 0);
  if (options.speculation) {
    const SchedulerOptions step = plan_step(loaded.figures, options);
    memory.draft_states = draft_policy(*options.speculation, step.block_size, usual_free_tokens(device))
                              .most_of_step(step.max_num_seqs);
  }
  return memory;
}

int state_slots(const SchedulerOptions& scheduler) {
  return scheduler.max_num_seqs + scheduler.draft_states + scheduler.saved_states;
}

EngineInfo describe(const EngineOptions& options, const LoadedModel& loaded, const MemoryFigures& memory,
                    const std::optional<LoadedDraft>& draft, const SchedulerOptions& scheduler) {
  const Model& model = loaded.executor->model();
  const ModelPlanFigures& figures = loaded.figures;
  const int ranks = options.parallel.rank_layout().size();
  EngineInfo info;
  info.index = options.first_index + options.index;
  info.architecture = model.spec.architecture;
  info.weight_bytes = ranks * static_cast<std::int64_t>(model.weight_bytes);
  if (draft) info.weight_bytes += static_cast<std::int64_t>(draft->model().weight_bytes);
  if (const auto& ends = model.ends) info.weight_bytes += static_cast<std::int64_t>(ends->weight_bytes);
  info.cache.bytes =
      ranks * (scheduler.num_blocks * figures.block_bytes + state_slots(scheduler) * figures.state_bytes) +
      scheduler.max_num_seqs * memory.source_bytes + scheduler.num_blocks * memory.draft_block_bytes;
  info.vocab_size = model.spec.vocab;
  if (figures.pools) describe_head(model.spec, info);
  if (model.tower) describe_media(model.spec, scheduler.max_num_seqs, scheduler.max_model_len, info);
  info.image.whole_prompts = model.spec.media.whole_prompts;
  info.max_queued = options.max_queued;
  info.max_logprobs = options.logprobs.max;
  if (options.model.prompt_embeds) info.prompt_embeds = model.spec.dim;
  info.max_loras = options.lora.in_memory();
  return info;
}

// Adds the proposer. `target` must outlive the engine.
Result<> add_proposer(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                      const LocalExecutor& target, std::optional<LoadedDraft> draft,
                      const SchedulerOptions& scheduler, EngineParts& parts) {
  StepTimes times;
  int free_tokens = usual_free_tokens(target.device());
  // If draft tokens need states, the scheduler has already planned how many draft tokens there are.
  if (target.device().shares_host_memory() && scheduler.draft_states == 0 &&
      options.speculation->per_batch_size.empty()) {
    TRY(times, measure_step_times(*parts.executor, scheduler, target.model().spec.vocab));
    free_tokens = free_tokens_of(times);
  }
  parts.draft_policy = draft_policy(*options.speculation, scheduler.block_size, free_tokens, times);
  TRY(parts.proposer, make_proposer(backend, *options.speculation, target, std::move(draft), scheduler));
  return {};
}

Result<std::unique_ptr<Engine>> load_on(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                                        const LoadHooks& hooks) {
  TRY(std::unique_ptr<Ranks> ranks, start_ranks(options, hooks));
  TRY(DeviceGroups device_ranks, groups_on_device(*backend, options, ranks.get()));
  // Loads weights and workspaces first, so that the free memory can be measured instead of estimated.
  auto loaded_or_not = load_model(backend, options, hooks, ranks.get(), std::move(device_ranks));
  if (ranks) TRY_VOID(ranks->agree(loaded_or_not ? Result<>() : std::unexpected(loaded_or_not.error())));
  if (!loaded_or_not) return std::unexpected(loaded_or_not.error());
  LoadedModel& loaded = *loaded_or_not;
  TRY(std::optional<LoadedDraft> draft, load_draft_of(backend, options, loaded));
  const KeptPlan kept_plan(hooks.kept_memory, options, loaded, *backend);
  TRY(const MemoryFigures memory, measure_memory(options, loaded, draft, kept_plan, ranks.get()));
  TRY(SchedulerOptions scheduler, plan_engine(loaded.figures, memory, options));
  scheduler = kept_plan.keep_size(std::move(scheduler), loaded.figures, memory, options);
  EngineInfo info = describe(options, loaded, memory, draft, scheduler);

  info.device = device_name(*backend);
  const LocalExecutor& local = *loaded.executor;
  const WorkFigures work = work_figures(options, loaded);
  TRY(KeptCache::Opened kept, kept_plan.open(scheduler, state_slots(scheduler)));
  info.cache.outlives_engine = kept.cache != nullptr;
  std::unique_ptr<Executor> whole;
  if (ranks) {
    TRY(whole, RankedExecutor::create(std::move(ranks), std::move(loaded.executor), scheduler.num_blocks,
                                      state_slots(scheduler), loaded.rank_caches));
  } else {
    TRY_VOID(loaded.executor->allocate_cache(scheduler.num_blocks, state_slots(scheduler),
                                             scheduler.max_num_seqs, std::move(kept.blocks)));
    whole = std::move(loaded.executor);
  }
  EngineParts parts{.executor = std::move(whole),
                    .vocabulary = hooks.make_vocabulary(info.vocab_size),
                    .seed = options.seed,
                    .after_step = hooks.after_step,
                    .kv_events = options.kv_events,
                    .kv_residency_sample = options.metrics.kv_cache ? options.metrics.kv_cache_sample : 0,
                    .work_figures = work,
                    .report_work = options.metrics.work,
                    .kv_transfer = options.kv_transfer,
                    .sessions = options.sessions,
                    .kept = std::move(kept.cache),
                    .threads = options.device.threads};
  if (options.speculation)
    TRY_VOID(add_proposer(backend, options, local, std::move(draft), scheduler, parts));
  return Engine::start(std::move(scheduler), std::move(info), std::move(parts));
}

// Returns a function that checks whether a GPU supports the model. All ranks use it, so that "auto" selects
// the same type of device on each rank.
CheckModel check_model_of(const EngineOptions& options) {
  return [&options](const Backend& gpu) -> Result<> {
    TRY(const LoadOptions load, load_options(options));
    return check_support(options.model.dir, load, gpu);
  };
}

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& requested, const LoadHooks& hooks) {
  if (requested.device.executor != "local") return load_simulated(requested, hooks);
  TRY(EngineOptions options, placed(requested, 0));
  const auto dressed = [&](Backend backend) {
    return hooks.dress ? hooks.dress(std::move(backend)) : std::move(backend);
  };
  TRY(Backend backend, choose_device(options, 0, check_model_of(options)));
  options.device.type = backend.name;
  return load_on(std::make_shared<Backend>(dressed(std::move(backend))), options, hooks);
}

Result<> check_weights(const EngineOptions& options, const std::string& path) {
  TRY(LoadOptions load, load_options(options));
  load.weights = path;
  const Result<> fit = check_weights(options.model.dir, load);
  return fit ? fit : invalid("weights_path", "{}", fit.error().message);
}

Result<> run_rank(const EngineOptions& requested, int rank) {
  TRY(EngineOptions options, placed(requested, rank));
  TRY(Backend backend, choose_device(options, rank, check_model_of(options)));
  options.device.type = backend.name;
  TRY_VOID(check_ranks(options));
  TRY(const auto ranks, Ranks::join(options, rank));
  const auto shared_backend = std::make_shared<Backend>(std::move(backend));
  TRY(DeviceGroups device_ranks, groups_on_device(*shared_backend, options, ranks.get()));
  auto loaded = load_model(shared_backend, options, {}, ranks.get(), std::move(device_ranks));
  TRY_VOID(ranks->agree(loaded ? Result<>() : std::unexpected(loaded.error())));
  TRY_VOID(memory_of_ranks(options, loaded->executor->device(), ranks.get()));
  return follow_rank_0(*loaded->executor, *ranks);
}

}  // namespace octavo
