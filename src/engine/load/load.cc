#include "engine/load/load.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
#include "engine/draft/load_draft.h"
#include "engine/execute/local_executor.h"
#include "engine/execute/ranked_executor.h"
#include "engine/execute/ranks.h"
#include "engine/execute/timed_executor.h"
#include "engine/load/choose_device.h"
#include "engine/load/describe_model.h"
#include "engine/load/engine_plan.h"
#include "engine/load/free_tokens.h"
#include "engine/load/model_figures.h"
#include "engine/load/placement.h"
#include "engine/option_values.h"
#include "kernels/backends.h"
#include "model/fingerprint.h"
#include "model/rope.h"
#include "model/shard.h"
#include "model/support.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

// Checks that a step has room for all tokens of an image beside the running answers.
Result<> check_step(const EngineOptions& options, const ModelSpec& tower) {
  const int tokens = tower.image_tokens();
  const int needed = tokens + std::min(options.max_num_seqs, options.max_num_batched_tokens - 1);
  if (options.max_num_batched_tokens < needed)
    return invalid(
        "max_num_batched_tokens",
        "max_num_batched_tokens is {}; a step must hold the {} tokens of an image beside max_num_seqs = {}",
        options.max_num_batched_tokens, tokens, options.max_num_seqs);
  if (const int most = options.long_prefill_token_threshold; most > 0 && most < tokens)
    return invalid("long_prefill_token_threshold",
                   "long_prefill_token_threshold is {}; an image has {} tokens", most, tokens);
  return {};
}

// Rejects unsupported options for models with cross attention.
Result<> check_cross(const EngineOptions& options, const Model& model) {
  const auto refuse = [&](std::string_view field, std::string_view what) {
    return field_failure(field, ErrorCode::unsupported, "{} {}, not {} yet", model.spec.architecture,
                         model.spec.hears_beside() ? "transcribes sound" : "reads prompts with an encoder",
                         what);
  };
  if (options.lora.enabled) return refuse("enable_lora", "with LoRA adapters");
  if (options.speculation) return refuse("speculative_config", "with draft tokens");
  if (model.spec.head) return refuse("runner", "as a pooling model");
  return {};
}

MakeVocabulary make_vocabulary(const LoadHooks& hooks, int vocab_size) {
  if (!hooks.vocabulary) return {};
  return [make = hooks.vocabulary, vocab_size] { return make(vocab_size); };
}

// Version of the cached values: raise it when the content of a cache changes.
constexpr int kCacheVersion = 1;

// Identity of the keys and values: models with the same fingerprint compute the same ones for the same
// tokens. Some RoPE scalings depend on max_model_len (model/rope.h).
Result<std::string> fingerprint_of(const EngineOptions& options, const Model& model) {
  TRY(const std::string files, model_fingerprint(options.model_dir, options.weights_dir));
  std::string text = fmt::format("{}|{}|{}|{}{}", kCacheVersion, files, name(model.activation),
                                 options.quantization, options.hf_overrides);
  for (const RopeSpec& rope : model.spec.ropes)
    text += fmt::format("|{}", fmt::join(rope_frequencies(rope, model.max_model_len), ","));
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(text)), 0);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

// A model, or a rank's part of it, on its device. Complete except for the KV cache.
struct Loaded {
  std::unique_ptr<LocalExecutor> executor;
  ModelPlanFigures figures;
  std::optional<Drafter> drafter = {};
  std::optional<RankCaches> rank_caches = {};  // set if blocks of ranks may leave the engine
};

Shard shard_of(const EngineOptions& options, const Ranks* ranks) {
  if (ranks == nullptr) return {};
  return {ranks->layout().part(ranks->rank()), ranks->layout().tensor, options.enable_expert_parallel,
          static_cast<std::uint16_t>(options.expert_balancing.redundant_experts)};
}

// All stages have the same number of blocks and states, so the stage with the largest layers decides.
Result<> share_among_stages(const EngineOptions& options, ModelSpec spec, const CacheOptions& cache,
                            const Ops& ops, ModelPlanFigures& figures) {
  TRY(const std::vector<Stage> stages, divide_layers(spec, options.pipeline_parallel_size));
  for (const Stage& stage : stages) {
    spec.stage = stage;
    const CacheLayout layout = cache_layout(spec, cache);
    figures.block_bytes = std::max(figures.block_bytes, layout.block_bytes(ops));
    figures.state_bytes = std::max(figures.state_bytes, layout.state_bytes());
  }
  return {};
}

// Each rank's part of the cache. spec: rank 0's.
Result<RankCaches> rank_caches(ModelSpec spec, const CacheOptions& cache, const RankLayout& layout) {
  const Shard shard = spec.shard;
  spec.shard = {};
  spec.stage = {};
  TRY(const std::vector<Stage> stages, divide_layers(spec, layout.pipeline));
  RankCaches caches{.whole = cache_layout(spec, cache)};
  if (caches.whole.state_floats > 0)
    return field_failure("kv_transfer_config", ErrorCode::unsupported,
                         "states of {}'s recurrent layers that are spread over ranks do not leave them yet",
                         spec.architecture);
  for (int rank = 0; rank < layout.size(); ++rank) {
    spec.shard = shard;
    spec.shard.rank = layout.part(rank);
    spec.stage = stages[static_cast<std::size_t>(layout.stage(rank))];
    caches.ranks.push_back(
        {layout.part(rank), layout.tensor, spec.stage.first_layer, cache_layout(spec, cache)});
  }
  return caches;
}

// Logs advice: packed checkpoints often keep the output matrix in 16 bits, and each step reads all of it.
Result<> advise_on_output(const EngineOptions& options, const Model& model) {
  TRY(const std::string_view method, quantization_method(options.model_dir));
  if (method == "none" || method == "gguf") return {};
  const Weight& output = model.network.ends->output();
  if (output.bytes() < 2 * static_cast<std::size_t>(output.rows() * output.cols())) return {};
  log_info(
      "the output matrix is not {} but plain: each step reads {} MB of it; --quantization int8 makes codes "
      "of it",
      method, output.bytes() / 1'000'000);
  return {};
}

// Options for loading the whole model, on any device.
Result<LoadOptions> load_options(const EngineOptions& options) {
  LoadOptions load{.max_model_len = options.max_model_len,
                   .dummy = options.load_format == "dummy",
                   .weights = options.weights_dir,
                   .threads = options.threads,
                   .images = options.images_max > 0,
                   .videos = options.videos_max > 0,
                   .sounds = options.sounds_max > 0,
                   .block_size = options.block_size};
  TRY(load.cache_dtype, kv_cache_dtype(options.kv_cache_dtype));
  TRY(load.dtype, model_dtype(options.dtype));
  TRY(load.reading, reading_of(options));
  TRY(load.quantization, quantization(options.quantization, options.model_dir));
  return load;
}

Result<Loaded> load_model(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                          const LoadHooks& hooks, const Ranks* ranks) {
  TRY(LoadOptions load, load_options(options));
  load.shard = shard_of(options, ranks);
  load.stage = ranks != nullptr ? ranks->layout().stage(ranks->rank()) : 0;
  load.stages = options.pipeline_parallel_size;
  load.progress = hooks.progress;
  if (options.speculation) TRY_VOID(validate(*options.speculation));
  // Heads are on rank 0, which has all rows.
  const bool is_rank_0 = ranks == nullptr || ranks->rank() == 0;
  const bool has_cache = is_rank_0 && options.speculation && options.speculation->head() != nullptr;
  const bool by_place = is_rank_0 && options.speculation && options.speculation->place_heads() != nullptr;
  load.whole_ends = has_cache || by_place;
  TRY(auto model, Model::load(options.model_dir, *backend, load));
  const auto has_experts = [](const LayerSpec& layer) {
    return std::holds_alternative<Experts>(layer.feed_forward);
  };
  if (options.expert_balancing.enabled && std::ranges::none_of(model->spec.layers, has_experts))
    return invalid("enable_eplb", "{} has no experts", model->spec.architecture);
  if (load.quantization == Encoding::plain && ranks == nullptr && !model->spec.head)
    TRY_VOID(advise_on_output(options, *model));
  if (model->spec.has_cross()) TRY_VOID(check_cross(options, *model));
  if (model->tower && model->spec.whole_images) TRY_VOID(check_step(options, model->tower->spec));
  const DType cache_dtype = load.cache_dtype.value_or(model->activation);
  const bool pools = model->spec.head.has_value();
  CacheOptions cache{
      .block_size = options.block_size, .dtype = cache_dtype, .window_groups = options.sliding_window_groups};
  const auto figures_of = [&](CacheLayout layout) {
    const std::int64_t block_bytes = layout.block_bytes(backend->ops), state_bytes = layout.state_bytes();
    return ModelPlanFigures{.layout = std::move(layout),
                            .max_model_len = model->max_model_len,
                            .block_bytes = block_bytes,
                            .state_bytes = state_bytes,
                            .pools = pools,
                            .hash_seed = secret_seed()};
  };
  Loaded loaded{.executor = {}, .figures = figures_of(cache_layout(model->spec, cache))};
  if (pools && !(caches_prefixes(options, model->spec) &&
                 holds_longest(options, loaded.figures, memory_of(options, *backend->device)))) {
    cache.window_groups = false;
    cache.one_plane = true;
    loaded.figures = figures_of(cache_layout(model->spec, cache));
    loaded.figures.caches_prefixes = false;
  }
  const CacheLayout layout = loaded.figures.layout;
  if (options.speculation && pools)
    return field_failure("speculative_config", ErrorCode::unsupported,
                         "{} does not generate: there is nothing to propose", model->spec.architecture);
  std::vector<int> kept_layers;
  if (has_cache) {
    TRY(loaded.drafter, load_drafter(*backend, options, *model, layout));
    kept_layers = loaded.drafter->model->spec.hidden->layers;
  }
  if (options.pipeline_parallel_size > 1)
    TRY_VOID(share_among_stages(options, model->spec, cache, backend->ops, loaded.figures));
  const SchedulerOptions step = plan_step(loaded.figures, options);
  std::string fingerprint;
  if (options.kv_transfer.enabled) {
    if (is_rank_0) {  // rank 0 defines the block format
      TRY(fingerprint, fingerprint_of(options, *model));
    }
    if (ranks != nullptr) {
      TRY(loaded.rank_caches, rank_caches(model->spec, cache, ranks->layout()));
    }
  }
  TRY(loaded.executor,
      LocalExecutor::create(backend, std::move(model), layout,
                            {.max_tokens = step.max_num_batched_tokens,
                             .max_sequences = step.max_num_seqs,
                             .max_adapters = options.lora.in_memory(),
                             .max_adapter_rank = options.lora.enabled ? options.lora.max_lora_rank : 0,
                             .fingerprint = std::move(fingerprint),
                             .shared_cache = loaded.rank_caches.has_value(),
                             .kept_layers = std::move(kept_layers),
                             .sampler = {options.processed_logprobs},
                             // Draft tokens need sampled tokens on the host.
                             .asynchronous = options.async_scheduling && !options.speculation && !pools,
                             .recorded = !options.enforce_eager && !pools,
                             .ranks = ranks != nullptr ? &ranks->groups() : nullptr,
                             .expert_balancing = options.expert_balancing}));
  return loaded;
}

Result<std::unique_ptr<Engine>> load_on(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                                        const LoadHooks& hooks) {
  TRY_VOID(check_ranks(options));
  if (options.data_parallel_size > 1 && !backend->device->shares_host_memory())
    return field_failure("data_parallel_size", ErrorCode::unsupported,
                         "must be 1 on devices other than cpu, got {} on {}: set --device cpu",
                         options.data_parallel_size, backend->name);
  std::unique_ptr<Ranks> ranks;
  if (options.rank_layout().size() > 1) {
    TRY(ranks, Ranks::start(options, hooks.rank_command));
  }

  // Loads weights and workspaces first: the remaining memory is then measured instead of estimated.
  auto loaded_or_not = load_model(backend, options, hooks, ranks.get());
  if (ranks) TRY_VOID(ranks->agree(loaded_or_not ? Result<>() : std::unexpected(loaded_or_not.error())));
  if (!loaded_or_not) return std::unexpected(loaded_or_not.error());
  Loaded& loaded = *loaded_or_not;
  auto& [executor, figures, drafter, caches] = loaded;
  const SchedulerOptions step = plan_step(figures, options);
  std::optional<LoadedDraft> draft;  // its cache has the same number of blocks as the model's
  if (options.speculation && options.speculation->draft_model() != nullptr) {
    TRY(draft, load_draft(backend, options, executor->model().spec, step));
  } else if (drafter) {
    TRY(draft, prepare_head(backend, options, *std::move(drafter), step));
  } else if (options.speculation && options.speculation->place_heads() != nullptr) {
    TRY(draft, load_place_heads(*backend, options, executor->model()));
  }
  const bool pools = executor->pools();
  const Device& device = executor->device();
  // A pooling model's cache has few blocks or none, so an estimate is enough.
  const bool measures =
      !device.shares_host_memory() && options.kv_cache_memory_bytes == 0 && !options.num_blocks && !pools;
  if (measures) TRY_VOID(executor->rehearse());
  int free_tokens = usual_free_tokens(device);
  MemoryFigures memory{
      .memory = memory_of(options, device),
      .source_bytes = executor->source_bytes(),
      .draft_block_bytes = draft ? draft->block_bytes : 0,
      .steps_in_flight = std::max(executor->steps_in_flight(), options.pipeline_parallel_size)};
  memory.memory.reserved = executor->later_bytes() + (draft ? draft->later_bytes() : 0);
  if (options.speculation)
    memory.draft_states =
        draft_policy(*options.speculation, step.block_size, free_tokens).most_of_step(step.max_num_seqs);
  TRY(SchedulerOptions scheduler, plan_engine(figures, memory, options));

  EngineInfo info;
  info.index = options.first_index + options.index;
  info.architecture = executor->model().spec.architecture;
  const int rank_count = options.rank_layout().size();
  info.weight_bytes = rank_count * static_cast<std::int64_t>(executor->model().weight_bytes);
  if (draft) info.weight_bytes += static_cast<std::int64_t>(draft->model().weight_bytes);
  if (const auto& ends = executor->model().ends)
    info.weight_bytes += static_cast<std::int64_t>(ends->weight_bytes);
  const int states = scheduler.max_num_seqs + scheduler.draft_states + scheduler.saved_states;
  info.cache_bytes =
      rank_count * (scheduler.num_blocks * figures.block_bytes + states * figures.state_bytes) +
      scheduler.max_num_seqs * memory.source_bytes + scheduler.num_blocks * memory.draft_block_bytes;
  info.vocab_size = executor->model().spec.vocab;
  if (pools) describe_head(executor->model().spec, info);
  if (const ModelSpec& spec = executor->model().spec; executor->model().tower)
    describe_media(spec, scheduler.max_num_seqs, scheduler.max_model_len, info);
  info.max_queued = options.max_queued;
  info.max_logprobs = options.max_logprobs;
  info.max_loras = options.lora.in_memory();
  const LocalExecutor& local = *executor;
  std::unique_ptr<Executor> whole;
  if (ranks) {
    TRY(whole,
        RankedExecutor::create(std::move(ranks), std::move(executor), scheduler.num_blocks, states, caches));
  } else {
    TRY_VOID(executor->allocate_cache(scheduler.num_blocks, states, scheduler.max_num_seqs));
    whole = std::move(executor);
  }
  EngineParts parts{.executor = std::move(whole),
                    .vocabulary = make_vocabulary(hooks, info.vocab_size),
                    .seed = options.seed,
                    .after_step = hooks.after_step,
                    .kv_events = options.kv_events,
                    .kv_transfer = options.kv_transfer};
  if (options.speculation) {
    StepTimes times;
    // If draft tokens have states, their number is already planned.
    if (device.shares_host_memory() && scheduler.draft_states == 0 &&
        options.speculation->per_batch_size.empty()) {
      TRY(times, measure_step_times(*parts.executor, scheduler, info.vocab_size));
      free_tokens = free_tokens_of(times);
    }
    parts.draft_policy = draft_policy(*options.speculation, scheduler.block_size, free_tokens, times);
    TRY(parts.proposer, make_proposer(backend, *options.speculation, local, std::move(draft), scheduler));
  }
  return Engine::start(std::move(scheduler), std::move(info), std::move(parts));
}

// Simulated model: the network determines the step times and the size of the cache.
Result<std::unique_ptr<Engine>> load_simulated(const EngineOptions& options, const LoadHooks& hooks) {
  constexpr std::string_view kPrefix = "simulated=";
  const bool named = options.executor.starts_with(kPrefix);
  if (!named && options.executor != "simulated")
    return invalid("executor", "must be local, simulated or simulated=.., got {}", options.executor);
  const std::string by = named ? options.executor.substr(kPrefix.size()) : "h100";
  if (options.speculation)
    return field_failure("speculative_config", ErrorCode::unsupported,
                         "a simulated executor says random tokens, which nothing can propose");

  TRY(const Reading reading, reading_of(options));
  TRY(const ModelSpec spec, load_spec(options.model_dir, reading));
  const ModelFigures figures = model_figures(spec);
  StepTiming timing;
  MemoryPlan memory{.asked = options.kv_cache_memory_bytes};
  if (const auto device = std::ranges::find(known_devices(), by, &Named<DeviceFigures>::name);
      device != known_devices().end()) {
    timing = roofline(figures, device->figures, 1);
    memory.all = static_cast<std::int64_t>(device->figures.memory_bytes);
    memory.available = memory.all - static_cast<std::int64_t>(figures.weight_bytes);
    memory.shared_with_host = false;
    memory.utilization = options.gpu_memory_utilization;
  } else {
    TRY(timing, read_step_timing(by));
  }
  const Backend reference = make_reference_backend();
  TRY(const std::optional<DType> chosen_dtype, kv_cache_dtype(options.kv_cache_dtype));
  const DType cache_dtype = chosen_dtype.value_or(DType::bf16);
  const CacheLayout layout =
      cache_layout(spec, {options.block_size, cache_dtype, options.sliding_window_groups});
  TRY_VOID(check_support(spec, {options.block_size, cache_dtype}, reference));
  const ModelPlanFigures loaded{.layout = layout,
                                .max_model_len = options.max_model_len.value_or(spec.max_positions),
                                .block_bytes = layout.block_bytes(reference.ops),
                                .state_bytes = layout.state_bytes(),
                                .hash_seed = secret_seed()};
  TRY(SchedulerOptions scheduler, plan_engine(loaded, {.memory = memory}, options));

  EngineInfo info;
  info.index = options.first_index + options.index;
  info.architecture = spec.architecture;
  info.cache_bytes = scheduler.num_blocks * loaded.block_bytes;
  info.vocab_size = spec.vocab;
  info.max_queued = options.max_queued;
  info.max_logprobs = options.max_logprobs;
  log_info("simulated: {} blocks of {} tokens", scheduler.num_blocks, scheduler.block_size);
  return Engine::start(std::move(scheduler), std::move(info),
                       {.executor = std::make_unique<TimedExecutor>(timing, spec.vocab),
                        .vocabulary = make_vocabulary(hooks, info.vocab_size),
                        .seed = options.seed,
                        .after_step = hooks.after_step,
                        .kv_events = options.kv_events,
                        .kv_transfer = options.kv_transfer});
}

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& asked, const LoadHooks& hooks) {
  if (asked.executor != "local") return load_simulated(asked, hooks);
  TRY(EngineOptions options, placed(asked, 0));
  const auto dressed = [&](Backend backend) {
    return hooks.dress ? hooks.dress(std::move(backend)) : std::move(backend);
  };
  TRY(Backend backend, choose_device(options, [&](const Backend& gpu) -> Result<> {
        TRY(const LoadOptions load, load_options(options));
        return check_support(options.model_dir, load, gpu);
      }));
  options.device = backend.name;
  return load_on(std::make_shared<Backend>(dressed(std::move(backend))), options, hooks);
}

Result<> check_weights(const EngineOptions& options, const std::string& path) {
  TRY(LoadOptions load, load_options(options));
  load.weights = path;
  const Result<> fit = check_weights(options.model_dir, load);
  return fit ? fit : invalid("weights_path", "{}", fit.error().message);
}

Result<> run_rank(const EngineOptions& asked, int rank) {
  TRY(EngineOptions options, placed(asked, rank));
  TRY(Backend backend, choose_device(options, [](const Backend&) { return Result<>(); }));
  options.device = backend.name;
  TRY_VOID(check_ranks(options));
  TRY(const auto ranks, Ranks::join(options, rank));
  auto loaded = load_model(std::make_shared<Backend>(std::move(backend)), options, {}, ranks.get());
  TRY_VOID(ranks->agree(loaded ? Result<>() : std::unexpected(loaded.error())));
  return follow_rank_0(*loaded->executor, *ranks);
}

}  // namespace octavo
