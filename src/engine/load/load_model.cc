#include "engine/load/load_model.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/size_text.h"
#include "engine/load/prompt_embeds.h"
#include "engine/option_values.h"
#include "kernels/cuda_host_weights.h"
#include "kernels/weight_memory.h"
#include "model/fingerprint.h"
#include "model/inspect.h"
#include "model/rope.h"
#include "model/shard.h"

namespace octavo {
namespace {

// A step must have space for all tokens of an image in addition to one token of each running sequence.
Result<> check_step(const EngineOptions& options, const ModelSpec& tower) {
  const int tokens = tower.image_tokens();
  const int needed =
      tokens + std::min(options.schedule.max_num_seqs, options.schedule.max_num_batched_tokens - 1);
  if (options.schedule.max_num_batched_tokens < needed)
    return invalid("max_num_batched_tokens",
                   "must be at least {}, so that a step can contain the {} tokens of an image and "
                   "max_num_seqs = {} other tokens; got {}",
                   needed, tokens, options.schedule.max_num_seqs, options.schedule.max_num_batched_tokens);
  if (const int most = options.schedule.long_prefill_token_threshold; most > 0 && most < tokens)
    return invalid("long_prefill_token_threshold",
                   "must be 0 or at least {}, because an image has {} tokens; got {}", tokens, tokens, most);
  return {};
}

Result<> check_cross(const EngineOptions& options, const Model& model) {
  const auto refuse = [&](std::string_view field, std::string_view what) {
    return field_failure(
        field, ErrorCode::unsupported, "{} {}, which is not supported {} yet", model.spec.architecture,
        model.spec.has_audio_encoder() ? "transcribes sound" : "encodes prompts with an encoder", what);
  };
  if (options.lora.enabled) return refuse("enable_lora", "with LoRA adapters");
  if (options.speculation) return refuse("speculative_config", "with draft tokens");
  if (model.spec.head) return refuse("runner", "as a pooling model");
  return {};
}

// Increase this number when the content of cached blocks changes, so that blocks of older versions are not
// used.
constexpr int kCacheVersion = 1;

// Returns the identity of keys and values. Models with equal identities compute equal keys and values for
// the same tokens. The identity includes max_model_len, because some RoPE scalings depend on it
// (model/rope.h). `read` is model_fingerprint or sampled_fingerprint.
Result<Hash128> content_of(const EngineOptions& options, const Model& model,
                           Result<std::string> (*read)(const std::string&, const std::string&)) {
  TRY(const std::string files, read(options.model.dir, options.model.weights_dir));
  std::string text = fmt::format("{}|{}|{}|{}{}", kCacheVersion, files, name(model.activation),
                                 options.model.quantization, options.model.hf_overrides);
  if (const std::string mmproj = options.model.mmproj_file(); !mmproj.empty()) {
    TRY(const std::string encoder, read(mmproj, ""));
    text += fmt::format("|{}", encoder);
  }
  for (const RopeSpec& rope : model.spec.ropes)
    text += fmt::format("|{}", fmt::join(rope_frequencies(rope, model.max_model_len), ","));
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(text)), 0);
}

Result<std::string> fingerprint_of(const EngineOptions& options, const Model& model,
                                   Result<std::string> (*read)(const std::string&, const std::string&)) {
  TRY(const Hash128 hash, content_of(options, model, read));
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

Shard shard_of(const EngineOptions& options, const Ranks* ranks) {
  if (ranks == nullptr) return {};
  return {
      .rank = ranks->layout().part(ranks->rank()),
      .size = ranks->layout().tensor,
      .whole_experts = options.parallel.enable_expert_parallel,
      .redundant_experts = static_cast<std::uint16_t>(options.parallel.expert_balancing.redundant_experts),
      .engines = options.parallel.nodes.expert_engines,
      .engine = options.parallel.shares_experts() ? options.first_index + options.index : 0};
}

// Sets the sizes that are equal in all pipeline stages. All stages have the same number of blocks and
// states, so the stage with the largest layers determines this number.
Result<> share_among_stages(const EngineOptions& options, ModelSpec spec, const CacheOptions& cache,
                            const Ops& ops, ModelPlanFigures& figures) {
  TRY(const std::vector<Stage> stages, divide_layers(spec, options.parallel.pipeline_parallel_size));
  for (const Stage& stage : stages) {
    spec.stage = stage;
    const CacheLayout layout = cache_layout(spec, cache);
    figures.block_bytes = std::max(figures.block_bytes, layout.block_bytes(ops));
    figures.state_bytes = std::max(figures.state_bytes, layout.state_bytes());
  }
  return {};
}

// Returns the layout of the cache on each rank. `spec` describes the part of the model on rank 0.
Result<RankCaches> rank_caches(ModelSpec spec, const CacheOptions& cache, const RankLayout& layout) {
  const Shard shard = spec.shard;
  spec.shard = {};
  spec.stage = {};
  TRY(const std::vector<Stage> stages, divide_layers(spec, layout.pipeline));
  RankCaches caches{.whole = cache_layout(spec, cache)};
  if (caches.whole.state_floats > 0)
    return field_failure(
        "kv_transfer_config", ErrorCode::unsupported,
        "the states of {}'s recurrent layers cannot be transferred if they are divided among ranks",
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

// Logs a hint if the output matrix is not quantised. Quantised checkpoints often keep it in 16 bits, and
// each step reads the whole matrix.
Result<> advise_on_output(const EngineOptions& options, const Model& model) {
  TRY(const std::string_view method, quantization_method(options.model.dir));
  if (method == "none" || method == "gguf") return {};
  const Weight& output = model.network.ends->output();
  if (output.bytes() < 2 * static_cast<std::size_t>(output.rows() * output.cols())) return {};
  log_info(
      "the output matrix is not quantised as {}, so each step reads {} MB of it: --quantization int8 "
      "quantises it",
      method, output.bytes() / 1'000'000);
  return {};
}

void report_quantization(const EngineOptions& options, const LoadOptions& load, const Model& model,
                         const Ranks* ranks) {
  const std::string_view part = ranks != nullptr ? " per rank" : "";
  if (load.quantization != Encoding::plain)
    return log_info("weights: {}, {}{} (from {})", name(load.quantization), size_text(model.weight_bytes),
                    part, size_text(model.checkpoint_bytes));
  if (quantization_method(options.model.dir).value_or("none") == "none") return;
  if (const auto checkpoint = open_checkpoint(options.model.dir, {}, options.model.weights_dir))
    log_info("weights: {}, {}{}", formats_text(*checkpoint), size_text(model.weight_bytes), part);
}

HostWeights host_weights(const EngineOptions& options, bool shares_host_memory, bool is_rank_0) {
  const HostWeights wanted{.expert_layers = options.device.expert_layers_on_host,
                           .bytes = static_cast<std::int64_t>(options.device.weights_on_host_gb * (1 << 30)),
                           .ranks = options.parallel.ranks_of_host()};
  if (is_rank_0 && shares_host_memory && wanted.any())
    log_warning(
        "cpu_offload_gb and n_cpu_moe have no effect: all weights are in host memory, where this device "
        "computes");
  return wanted;
}

Result<> report_host_weights(const Backend& backend, const LoadOptions& load, const Model& model,
                             const Ranks* ranks) {
  std::vector<std::string> uses;
  const auto [gpu_reads, cpu_computes] = model.host_layers;
  if (cpu_computes > 0) {
    TRY(const Backend* cpu, cuda_host_backend(*backend.device, load.threads));
    uses.push_back(fmt::format("the {} computes experts of {} layers", cpu->device->name(), cpu_computes));
  }
  if (gpu_reads > 0) uses.push_back(fmt::format("the GPU reads weights of {} layers over PCIe", gpu_reads));
  log_info("{} of {} of weights{} are in host memory: {}", size_text(model.host_weight_bytes),
           size_text(model.weight_bytes), ranks != nullptr ? " a rank" : "", fmt::join(uses, ", and "));
  return {};
}

// The draft heads that this rank loads. Only rank 0 has heads, because only rank 0 has the complete rows.
struct RankHeads {
  bool one_with_cache = false;
  bool by_position = false;

  RankHeads(const EngineOptions& options, bool is_rank_0) {
    if (!is_rank_0 || !options.speculation) return;
    one_with_cache = options.speculation->head() != nullptr;
    by_position = options.speculation->position_heads() != nullptr;
  }
};

Result<> check_model(const EngineOptions& options, const LoadOptions& load, const Model& model,
                     const Ranks* ranks) {
  const auto has_experts = [](const LayerSpec& layer) {
    return std::holds_alternative<Experts>(layer.feed_forward);
  };
  if (std::ranges::none_of(model.spec.layers, has_experts)) {
    if (options.device.expert_layers_on_host != 0 && (ranks == nullptr || ranks->rank() == 0))
      log_warning("n_cpu_moe has no effect: {} has no experts; cpu_offload_gb moves other weights",
                  model.spec.architecture);
    if (options.parallel.expert_balancing.enabled)
      return invalid("enable_eplb", "{} has no experts", model.spec.architecture);
    if (options.parallel.shares_experts())
      return invalid("enable_expert_parallel", "{} has no experts to share among {} engines: remove the flag",
                     model.spec.architecture, options.parallel.nodes.expert_engines);
  }
  if (load.quantization == Encoding::plain && ranks == nullptr && !model.spec.head)
    TRY_VOID(advise_on_output(options, model));
  if (model.spec.has_cross()) TRY_VOID(check_cross(options, model));
  if (model.tower && model.spec.media.whole_images) TRY_VOID(check_step(options, model.tower->spec));
  if (options.model.prompt_embeds) TRY_VOID(check_prompt_embeds(options, model));
  if (options.speculation && model.spec.head)
    return field_failure("speculative_config", ErrorCode::unsupported,
                         "{} is not a generative model, so draft tokens have no use: remove the flag",
                         model.spec.architecture);
  return {};
}

ModelPlanFigures figures_of(const Model& model, const CacheOptions& cache, const Backend& backend) {
  CacheLayout layout = cache_layout(model.spec, cache);
  const std::int64_t block_bytes = layout.block_bytes(backend.ops), state_bytes = layout.state_bytes();
  return {.layout = std::move(layout),
          .max_model_len = model.max_model_len,
          .block_bytes = block_bytes,
          .state_bytes = state_bytes,
          .pools = model.spec.head.has_value(),
          .whole_prompts = model.spec.media.whole_prompts,
          .hash_seed = secret_seed()};
}

// Returns the sizes for the plan. A pooling model computes texts without a cache if a cache is useless, or
// if the longest text does not fit into the cache.
ModelPlanFigures plan_figures(const EngineOptions& options, const Model& model, const Backend& backend,
                              CacheOptions& cache) {
  ModelPlanFigures figures = figures_of(model, cache, backend);
  if (!figures.pools || (caches_prefixes(options, model.spec) &&
                         holds_longest(options, figures, memory_of(options, *backend.device))))
    return figures;
  cache.window_groups = false;
  cache.one_plane = true;
  figures = figures_of(model, cache, backend);
  figures.caches_prefixes = false;
  return figures;
}

// Steps over several ranks are recorded if the device exchanges the values (DeviceGroups). Whole experts on
// ranks need the host, which sorts their rows.
bool ranks_can_record(const EngineOptions& options, const DeviceGroups& device_ranks) {
  return device_ranks.on_stream && !options.parallel.enable_expert_parallel;
}

LocalExecutorOptions executor_options(const EngineOptions& options, const SchedulerOptions& step, bool pools,
                                      const Ranks* ranks, const DeviceGroups& device_ranks) {
  return {.max_tokens = step.max_num_batched_tokens,
          .max_sequences = step.max_num_seqs,
          .max_adapters = options.lora.in_memory(),
          .max_adapter_rank = options.lora.enabled ? options.lora.max_lora_rank : 0,
          .sampler = {options.logprobs.processed},
          // Not asynchronous with drafting, because draft tokens are proposed from the last step's sampled
          // tokens, which must be on the host.
          .asynchronous = options.device.async_scheduling && !options.speculation && !pools,
          // With prompt embeddings, the emulated device reports a data race in captured steps while they
          // store keys.
          .recorded = !options.device.enforce_eager && !pools && !options.model.prompt_embeds &&
                      (ranks == nullptr || ranks_can_record(options, device_ranks)),
          .ranks = ranks != nullptr ? &ranks->groups() : nullptr,
          .expert_balancing = options.parallel.expert_balancing,
          .prompt_embeds = options.model.prompt_embeds};
}

// Several ranks, and devices that are not CPUs, load their weights from the model's files.
void take_weight_cache(const EngineOptions& options, const Backend& backend, const Ranks* ranks,
                       LoadOptions& load) {
  if (ranks != nullptr || !has_weight_memory(*backend.device) || load.dummy)
    return log_warning(
        "--weight-cache-dir has no effect: it needs a model on a CPU without ranks or dummy weights");
  load.weight_cache_dir = options.model.weight_cache_dir;
  load.late = false;
}

}  // namespace

Result<LoadOptions> load_options(const EngineOptions& options) {
  LoadOptions load{.max_model_len = options.model.max_model_len,
                   .fp8_activations = options.model.fp8_activations,
                   .dummy = options.model.load_format == "dummy",
                   .weights = options.model.weights_dir,
                   .threads = options.device.threads,
                   .images = options.media.images > 0,
                   .videos = options.media.videos > 0,
                   .sounds = options.media.sounds > 0,
                   .block_size = options.cache.block_size};
  TRY(load.cache_dtype, kv_cache_dtype(options.cache.dtype));
  TRY(load.dtype, model_dtype(options.model.dtype));
  TRY(load.reading, reading_of(options));
  TRY(load.quantization, quantization(options.model.quantization, options.model.dir));
  return load;
}

Result<LoadedModel> load_model(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                               const LoadHooks& hooks, const Ranks* ranks, DeviceGroups device_ranks) {
  const bool is_rank_0 = ranks == nullptr || ranks->rank() == 0;
  const RankHeads heads(options, is_rank_0);
  TRY(LoadOptions load, load_options(options));
  load.shard = shard_of(options, ranks);
  load.pipeline = {.stage = ranks != nullptr ? ranks->layout().stage(ranks->rank()) : 0,
                   .stages = options.parallel.pipeline_parallel_size};
  load.progress = hooks.progress;
  load.host_weights = host_weights(options, backend->device->shares_host_memory(), is_rank_0);
  // Draft tokens are planned by the measured times of steps, which need matrices in their final layout.
  load.late = options.model.late && ranks == nullptr && !options.speculation;
  if (!options.model.weight_cache_dir.empty()) take_weight_cache(options, *backend, ranks, load);
  load.whole_ends = heads.one_with_cache || heads.by_position;
  if (options.speculation) TRY_VOID(validate(*options.speculation));
  TRY(auto model, Model::load(options.model.dir, *backend, load));
  TRY_VOID(check_model(options, load, *model, ranks));
  if (is_rank_0) report_quantization(options, load, *model, ranks);
  if (is_rank_0 && model->host_weight_bytes > 0) TRY_VOID(report_host_weights(*backend, load, *model, ranks));

  CacheOptions cache{.block_size = options.cache.block_size,
                     .dtype = load.cache_dtype.value_or(model->activation),
                     .window_groups = options.cache.sliding_window_groups};
  LoadedModel loaded{.executor = {}, .figures = plan_figures(options, *model, *backend, cache)};
  const CacheLayout layout = loaded.figures.layout;  // layout of this rank's stage
  if (options.parallel.pipeline_parallel_size > 1)
    TRY_VOID(share_among_stages(options, model->spec, cache, backend->ops, loaded.figures));
  LocalExecutorOptions local = executor_options(options, plan_step(loaded.figures, options),
                                                loaded.figures.pools, ranks, device_ranks);
  if (heads.one_with_cache) {
    TRY(loaded.drafter, load_drafter(*backend, options, *model, layout));
    local.kept_layers = loaded.drafter->model->spec.inputs.hidden->layers;
  }
  // The fingerprint must only show whether the files have changed since the last start, and the server itself
  // chose them. So it is computed from samples of their bytes.
  if (hooks.kept_memory >= 0) {
    TRY(loaded.content, content_of(options, *model, sampled_fingerprint));
  }
  if (options.kv_transfer.enabled) {
    if (is_rank_0) {  // rank 0 determines the block format
      TRY(local.fingerprint, fingerprint_of(options, *model, model_fingerprint));
    }
    if (ranks != nullptr) {
      TRY(loaded.rank_caches, rank_caches(model->spec, cache, ranks->layout()));
    }
    local.shared_cache = loaded.rank_caches.has_value();
  } else if (ranks == nullptr && options.sessions.imports) {
    // Exported sessions carry this fingerprint. If it is empty, the engine refuses exports and imports.
    auto fingerprint = fingerprint_of(options, *model, model_fingerprint);
    if (!fingerprint)
      log_error(
          "sessions are neither exported nor imported, because the model's fingerprint cannot be computed: "
          "{}",
          fingerprint.error().message);
    local.fingerprint = std::move(fingerprint).value_or("");
  }
  TRY(loaded.executor,
      LocalExecutor::create(backend, std::move(model), layout, local, std::move(device_ranks)));
  return loaded;
}

}  // namespace octavo
