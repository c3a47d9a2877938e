#include "engine/load.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
#include "engine/free_tokens.h"
#include "engine/load_draft.h"
#include "engine/local_executor.h"
#include "engine/memory_plan.h"
#include "engine/model_figures.h"
#include "engine/option_values.h"
#include "engine/placement.h"
#include "engine/ranked_executor.h"
#include "engine/ranks.h"
#include "engine/timed_executor.h"
#include "kernels/backends.h"
#include "model/fingerprint.h"
#include "model/rope.h"
#include "model/shard.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

SchedulerOptions scheduler_options(const EngineOptions& options, const CacheLayout& layout,
                                   int max_model_len) {
  SchedulerOptions s;
  s.block_size = layout.block_size;
  s.groups.clear();
  for (const LayerGroup& group : layout.groups) s.groups.push_back({group.window});
  // The scheduler counts in blocks: without attention they have no bytes, and sequences hold them for a step. The
  // block of the token before the next names the prefix.
  if (layout.groups.empty()) s.groups.push_back({.window = 2});
  s.enable_prefix_caching = options.enable_prefix_caching;
  const int blocks = (s.mamba_block_size + s.block_size - 1) / s.block_size;
  s.mamba_block_size = options.mamba_block_size.value_or(blocks * s.block_size);
  s.prefix_hash = {options.prefix_hash, secret_seed()};
  s.max_num_batched_tokens = options.max_num_batched_tokens;
  s.max_num_seqs = std::min(options.max_num_seqs, options.max_num_batched_tokens);
  s.long_prefill_token_threshold = options.long_prefill_token_threshold;
  s.enable_chunked_prefill = options.enable_chunked_prefill;
  s.policy = options.policy;
  s.max_model_len = max_model_len;
  s.watermark = options.watermark;
  if (options.speculation) s.max_draft_tokens = options.speculation->num_speculative_tokens;
  return s;
}

// Of models whose last token says all that is asked of a text, and is all that they need to compute where
// what comes before it is cached.
bool caches_prefixes(const EngineOptions& options, const ModelSpec& spec) {
  const bool causal = std::ranges::all_of(spec.layers, [](const LayerSpec& layer) {
    const auto* attention = std::get_if<Attention>(&layer.mixer);
    return attention != nullptr && attention->causal;
  });
  return options.enable_prefix_caching && options.rank_layout().size() == 1 && causal &&
         spec.head->pool == Pool::last && !spec.head->each_token;
}

// Texts that are not continued: what of each is not cached is computed in one step, which is, without the
// prefix cache, all that needs its keys and values. The +1 is the place of an answer, which is never
// computed.
void read_whole_texts(SchedulerOptions& s, bool prefixes) {
  s.enable_prefix_caching = prefixes;
  s.enable_chunked_prefill = false;
  s.long_prefill_token_threshold = 0;
  s.max_model_len += 1;
  s.max_num_batched_tokens = std::max(s.max_num_batched_tokens, s.max_model_len);
  const int blocks = s.max_num_batched_tokens / s.block_size + s.max_num_seqs;
  s.num_blocks = blocks * static_cast<int>(s.groups.size());
}

Task task_of(const Head& head) {
  if (head.each_token) return head.labels.empty() ? Task::token_embed : Task::token_classify;
  return head.labels.empty() ? Task::embed : Task::classify;
}

ScoreActivation activation_of(const Head& head) {
  switch (head.label_activation) {
    case LabelActivation::none:
      break;
    case LabelActivation::sigmoid:
      return ScoreActivation::sigmoid;
    case LabelActivation::softmax:
      return ScoreActivation::softmax;
    case LabelActivation::relu:
      return ScoreActivation::relu;
  }
  return ScoreActivation::none;
}

// What a client must know of the heads.
void describe_head(const ModelSpec& spec, EngineInfo& info) {
  const Head& head = *spec.head;
  info.task = task_of(head);
  info.pooled_size = pooled_size(spec);
  info.normalise = head.normalise;
  info.labels = head.labels;
  info.score_activation = activation_of(head);
  for (std::size_t i = 1; i < spec.heads(); ++i) {
    const Head& of_tokens = spec.head_at(i);
    info.token_heads.push_back({.task = task_of(of_tokens),
                                .size = pooled_size(spec, i),
                                .normalise = of_tokens.normalise,
                                .activation = activation_of(of_tokens),
                                .left_out_first = of_tokens.left_out_first,
                                .left_out_last = of_tokens.left_out_last});
  }
}

EngineInfo::ImageRule image_rule(const ModelSpec& spec, int max_model_len) {
  const ImageInput& input = *spec.tower->image;
  const bool any = input.image_size == 0;
  return {.size = input.image_size,
          .tokens = any ? max_model_len : input.side() * input.side(),
          .token_id = spec.media_token,
          .unit = input.unit(),
          .row_breaks = input.row_breaks,
          .whole = spec.whole_images,
          .tiled = input.tiled,
          .whole_last = input.whole_last ? input.merge : 0,
          .frames = spec.video_token >= 0 ? std::max(1, input.frames) : 0,
          .video_token_id = std::max(0, spec.video_token),
          .time_steps = input.time_steps};
}

// What a client must know of an encoder of images, sound or prompts.
void describe_media(const ModelSpec& spec, int max_num_seqs, int max_model_len, EngineInfo& info) {
  if (const auto& source = spec.tower->source)
    info.source = {.tokens = source->rows, .places = max_num_seqs, .begin = source->begin};
  else if (spec.hears_beside())
    info.sound = {.mels = spec.tower->sound->mels, .frames = spec.tower->sound->frames(), .places = max_num_seqs};
  else if (const std::optional<SoundInput>& sound = spec.tower->sound)
    info.sound = {.mels = sound->mels,
                  .frames = sound->frames(),
                  .tokens = sound->tokens(),
                  .token_id = spec.media_token,
                  .whole = sound->whole};
  else
    info.image = image_rule(spec, max_model_len);
}

// Takes the states of max_num_seqs sequences and of draft tokens from `bytes`, or of as many as half of it holds:
// sequences first, but for one draft token. What is kept of a sequence's sound or source counts as a state.
Result<> plan_states(std::int64_t state_bytes, std::int64_t& bytes, SchedulerOptions& s) {
  if (state_bytes == 0) return {};
  const std::int64_t most = bytes / 2 / state_bytes;
  const int drafts = std::min(s.draft_states, 1);
  if (most < 1 + drafts)
    return invalid("kv_cache_memory_bytes", "{} bytes, of which half is for states: one sequence needs {}",
                   bytes, (1 + drafts) * state_bytes);
  s.draft_states = static_cast<int>(
      std::clamp<std::int64_t>(most - s.max_num_seqs, drafts, std::max(s.draft_states, drafts)));
  if (const std::int64_t room = most - s.draft_states; room < s.max_num_seqs) {
    log_warning("a sequence has {} bytes of states: max_num_seqs lowered from {} to {}", state_bytes,
                s.max_num_seqs, room);
    s.max_num_seqs = static_cast<int>(room);
  }
  bytes -= (s.max_num_seqs + s.draft_states) * state_bytes;
  return {};
}

// Takes the states that the prefix cache keeps from `bytes`, at most as many as the longest sequences come to; beside
// blocks a quarter. Where there is room for none, no prefix can be shared.
void plan_saved_states(std::int64_t state_bytes, std::int64_t block_bytes, std::int64_t& bytes,
                       SchedulerOptions& s) {
  if (state_bytes == 0 || !s.enable_prefix_caching) return;
  const std::int64_t passed = std::int64_t{s.max_num_seqs} * (s.max_model_len / s.mamba_block_size);
  const std::int64_t fitting = (block_bytes > 0 ? bytes / 4 : bytes) / state_bytes;
  s.saved_states = static_cast<int>(std::min({fitting, passed, std::int64_t{1} << 16}));
  s.enable_prefix_caching = s.saved_states > 0;
  bytes -= s.saved_states * state_bytes;
  log_info("prefix cache: {} states of {} bytes, one each {} tokens", s.saved_states, state_bytes,
           s.mamba_block_size);
}

// Without attention, blocks are but the names of prefixes: as many as the sequences and the saved states go with.
std::int64_t blocks_without_bytes(const SchedulerOptions& s) {
  const int step = std::max(s.max_num_batched_tokens, s.mamba_block_size);
  return std::int64_t{s.max_num_seqs} * blocks_of_sequence(s, s.max_model_len) +
         std::int64_t{s.saved_states} * (step / s.block_size + 1);
}

// Settles the number of states and blocks, and with it the longest sequence: one that was asked for must fit,
// the model's own limit gives way.
Result<> plan_cache(const EngineOptions& options, MemoryPlan memory, std::int64_t block_bytes,
                    std::int64_t state_bytes, std::int64_t source_bytes, SchedulerOptions& s) {
  const std::int64_t cached = blocks_of_sequence(s, s.max_model_len) * block_bytes;
  memory.useful = s.max_num_seqs * (cached + 2 * (state_bytes + source_bytes)) +
                  2 * s.draft_states * state_bytes;  // half may be states
  std::int64_t bytes = cache_bytes(memory);
  TRY_VOID(plan_states(state_bytes + source_bytes, bytes, s));
  plan_saved_states(state_bytes, block_bytes, bytes, s);
  const std::int64_t fitting = block_bytes > 0 ? bytes / block_bytes : blocks_without_bytes(s);
  const std::int64_t blocks = options.num_blocks ? *options.num_blocks : fitting;
  s.num_blocks = static_cast<int>(std::min<std::int64_t>(blocks, 1 << 30));
  const int longest = longest_sequence(s);
  if (longest < 2 || (options.max_model_len && longest < s.max_model_len))
    return invalid("kv_cache_memory_bytes",
                   "{} KV blocks of {} bytes hold sequences of {} tokens, max_model_len is {}", s.num_blocks,
                   block_bytes, longest, s.max_model_len);
  if (longest < s.max_model_len)
    log_warning("the KV cache ({} blocks) holds sequences of {} tokens: max_model_len lowered from {}",
                s.num_blocks, longest, s.max_model_len);
  s.max_model_len = longest;
  return {};
}

MemoryPlan memory_of(const EngineOptions& options, const Device& device) {
  return {.asked = options.kv_cache_memory_bytes,
          .all = static_cast<std::int64_t>(device.memory_bytes()),
          .available = static_cast<std::int64_t>(device.available_bytes()) /
                       (options.data_parallel_size * options.ranks_of_host()),
          .shared_with_host = device.shares_host_memory(),
          .utilization = options.gpu_memory_utilization};
}

// Whether the KV cache would have room for the longest text; where it has not, texts are read without.
bool holds_longest(const EngineOptions& options, const Backend& backend, const CacheLayout& layout,
                   int max_model_len) {
  const std::int64_t bytes = layout.block_bytes(backend.ops);
  const SchedulerOptions scheduler = scheduler_options(options, layout, max_model_len + 1);
  MemoryPlan memory = memory_of(options, *backend.device);
  memory.useful = std::numeric_limits<std::int64_t>::max();
  const std::int64_t blocks = options.num_blocks ? *options.num_blocks : cache_bytes(memory) / bytes;
  if (blocks > blocks_of_sequence(scheduler, max_model_len + 1)) return true;
  log_info(
      "the KV cache would have {} blocks, too few for a text of {} tokens: beginnings of texts are not kept",
      blocks, max_model_len);
  return false;
}

// A step has room for all of an image, beside the answers that run.
Result<> check_step(const EngineOptions& options, const ModelSpec& tower) {
  const int tokens = tower.image_tokens();
  const int needed = tokens + std::min(options.max_num_seqs, options.max_num_batched_tokens - 1);
  if (options.max_num_batched_tokens < needed)
    return invalid("max_num_batched_tokens",
                   "max_num_batched_tokens is {}; a step must hold the {} tokens of an image beside max_num_seqs = {}",
                   options.max_num_batched_tokens, tokens, options.max_num_seqs);
  if (const int most = options.long_prefill_token_threshold; most > 0 && most < tokens)
    return invalid("long_prefill_token_threshold", "long_prefill_token_threshold is {}; an image has {} tokens", most, tokens);
  return {};
}

// What cannot be done yet beside images or sound in prompts; without them it can.
Result<> check_media(const EngineOptions& options, const Model& model, const Backend& backend) {
  if (model.tower->spec.sound && backend.name == "cuda")
    return field_failure("device", ErrorCode::unsupported,
                         "not with sound yet, which {} hears; --limit-mm-per-prompt '{{\"audio\": 0}}' leaves it out",
                         model.spec.architecture);
  return model.spec.whole_images ? check_step(options, model.tower->spec) : Result<>();
}

// What cannot be done yet with models whose layers look at an encoder's rows.
Result<> check_cross(const EngineOptions& options, const Model& model, const Backend& backend) {
  const auto refuse = [&](std::string_view field, std::string_view what) {
    return field_failure(field, ErrorCode::unsupported, "{} {}, not {} yet", model.spec.architecture,
                         model.spec.hears_beside() ? "transcribes sound" : "reads prompts with an encoder", what);
  };
  if (backend.name == "cuda") return refuse("device", "on cuda");
  if (options.lora.enabled) return refuse("enable_lora", "with LoRA adapters");
  if (options.speculation) return refuse("speculative_config", "with draft tokens");
  if (model.spec.head) return refuse("runner", "as a pooling model");
  return {};
}

// The device that the options ask for.
Result<Backend> make_backend(const EngineOptions& options) {
  if (options.device == "reference") return make_reference_backend();
  if (options.device == "cuda") return make_cuda_backend();
  if (options.device == "auto")
    if (auto cuda = make_cuda_backend()) return cuda;
  if (options.device == "cpu" || options.device == "auto")
    return make_cpu_backend({.threads = options.threads, .isa = {}});
  return invalid("device", "must be auto, cpu, cuda or reference, got {}", options.device);
}

// Of the numbers that a network puts into its cache: raise it when what stands in a cache changes.
constexpr int kCacheVersion = 1;

// Of models whose keys and values are the same, given the same tokens. Some ways to stretch a rotary
// embedding depend on max_model_len (model/rope.h).
Result<std::string> fingerprint_of(const EngineOptions& options, const Model& model) {
  TRY(const std::string files, model_fingerprint(options.model_dir, options.weights_dir));
  std::string text = fmt::format("{}|{}|{}|{}{}", kCacheVersion, files, name(model.activation),
                                 options.quantization, options.hf_overrides);
  for (const RopeSpec& rope : model.spec.ropes)
    text += fmt::format("|{}", fmt::join(rope_frequencies(rope, model.max_model_len), ","));
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(text)), 0);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

// A model, or a rank's part of it, on its device, with everything but the KV cache.
struct Loaded {
  std::unique_ptr<LocalExecutor> executor;
  SchedulerOptions scheduler;
  std::int64_t block_bytes = 0;
  std::int64_t state_bytes = 0;
  std::optional<Drafter> drafter = {};
  std::optional<RankCaches> rank_caches = {};  // where blocks of ranks may leave the engine
};

Shard shard_of(const EngineOptions& options, const Ranks* ranks) {
  if (ranks == nullptr) return {};
  return {ranks->layout().part(ranks->rank()), ranks->layout().tensor, options.enable_expert_parallel,
          static_cast<std::uint16_t>(options.expert_balancing.redundant_experts)};
}

// All stages have as many blocks and states, so that the one whose layers need most decides.
Result<> share_among_stages(const EngineOptions& options, ModelSpec spec, const CacheOptions& cache, const Ops& ops,
                            Loaded& loaded) {
  TRY(const std::vector<Stage> stages, divide_layers(spec, options.pipeline_parallel_size));
  for (const Stage& stage : stages) {
    spec.stage = stage;
    const CacheLayout layout = cache_layout(spec, cache);
    loaded.block_bytes = std::max(loaded.block_bytes, layout.block_bytes(ops));
    loaded.state_bytes = std::max(loaded.state_bytes, layout.state_bytes());
  }
  return {};
}

// What each rank has of the cache. spec: rank 0's.
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
    caches.ranks.push_back({layout.part(rank), layout.tensor, spec.stage.first_layer, cache_layout(spec, cache)});
  }
  return caches;
}

// Packed checkpoints most often leave the output matrix in 16 bits, all of which each step reads.
Result<> advise_on_output(const EngineOptions& options, const Model& model) {
  TRY(const std::string_view method, quantization_method(options.model_dir));
  if (method == "none" || method == "gguf") return {};
  const Weight& output = model.network.output();
  if (output.bytes() < 2 * static_cast<std::size_t>(output.rows() * output.cols())) return {};
  log_info("the output matrix is not {} but plain: each step reads {} MB of it; --quantization int8 makes codes of it",
           method, output.bytes() / 1'000'000);
  return {};
}

// Of all of the model, on any device.
Result<LoadOptions> load_options(const EngineOptions& options) {
  LoadOptions load{.max_model_len = options.max_model_len,
                   .dummy = options.load_format == "dummy",
                   .weights = options.weights_dir,
                   .threads = options.threads,
                   .images = options.images_max > 0,
                   .videos = options.videos_max > 0,
                   .sounds = options.sounds_max > 0};
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
  // Heads are on rank 0, where each of the model's rows is, too.
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
  if (model->spec.has_cross())
    TRY_VOID(check_cross(options, *model, *backend));
  else if (model->tower)
    TRY_VOID(check_media(options, *model, *backend));
  TRY(const DType cache_dtype, kv_cache_dtype(options.kv_cache_dtype, model->activation));
  const bool pools = model->spec.head.has_value();
  CacheOptions cache{
      .block_size = options.block_size, .dtype = cache_dtype, .window_groups = options.sliding_window_groups};
  CacheLayout layout = cache_layout(model->spec, cache);
  const bool prefixes = pools && caches_prefixes(options, model->spec) &&
                        holds_longest(options, *backend, layout, model->max_model_len);
  if (pools && !prefixes) {
    cache.window_groups = false;
    cache.one_plane = true;
    layout = cache_layout(model->spec, cache);
  }
  TRY_VOID(layout.supported(backend->ops));
  if (options.speculation && pools)
    return field_failure("speculative_config", ErrorCode::unsupported,
                         "{} does not generate: there is nothing to propose", model->spec.architecture);
  Loaded loaded{.executor = {},
                .scheduler = scheduler_options(options, layout, model->max_model_len),
                .block_bytes = layout.block_bytes(backend->ops),
                .state_bytes = layout.state_bytes()};
  std::vector<int> kept_layers;
  if (has_cache) {
    TRY(loaded.drafter, load_drafter(*backend, options, *model, layout));
    kept_layers = loaded.drafter->model->spec.hidden->layers;
  }
  if (options.pipeline_parallel_size > 1)
    TRY_VOID(share_among_stages(options, model->spec, cache, backend->ops, loaded));
  if (pools) read_whole_texts(loaded.scheduler, prefixes);
  std::string fingerprint;
  if (options.kv_transfer.enabled) {
    TRY(fingerprint, fingerprint_of(options, *model));
    if (ranks != nullptr) {
      TRY(loaded.rank_caches, rank_caches(model->spec, cache, ranks->layout()));
    }
  }
  TRY(loaded.executor,
      LocalExecutor::create(backend, std::move(model), layout,
                            {.max_tokens = loaded.scheduler.max_num_batched_tokens,
                             .max_sequences = loaded.scheduler.max_num_seqs,
                             .max_adapters = options.lora.in_memory(),
                             .max_adapter_rank = options.lora.enabled ? options.lora.max_lora_rank : 0,
                             .fingerprint = std::move(fingerprint),
                             .shared_cache = loaded.rank_caches.has_value(),
                             .kept_layers = std::move(kept_layers),
                             .sampler = {options.processed_logprobs},
                             // Draft tokens are made of tokens that the host has seen.
                             .asynchronous = options.async_scheduling && !options.speculation && !pools,
                             .recorded = !options.enforce_eager && !pools,
                             .ranks = ranks != nullptr ? &ranks->groups() : nullptr,
                             .expert_balancing = options.expert_balancing}));
  return loaded;
}

Result<std::unique_ptr<Engine>> load_on(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                                        const LoadHooks& hooks) {
  TRY_VOID(check_ranks(options));
  if (options.data_parallel_size > 1 && backend->name != "cpu")
    return field_failure("data_parallel_size", ErrorCode::unsupported,
                         "must be 1 on devices other than cpu, got {} on {}", options.data_parallel_size,
                         backend->name);
  std::unique_ptr<Ranks> ranks;
  if (options.rank_layout().size() > 1) {
    TRY(ranks, Ranks::start(options, hooks.rank_command));
  }

  // Weights and workspaces first: what is left then is measured, not guessed.
  auto loaded_or_not = load_model(backend, options, hooks, ranks.get());
  if (ranks) TRY_VOID(ranks->agree(loaded_or_not ? Result<>() : std::unexpected(loaded_or_not.error())));
  if (!loaded_or_not) return std::unexpected(loaded_or_not.error());
  Loaded& loaded = *loaded_or_not;
  auto& [executor, scheduler, block_bytes, state_bytes, drafter, caches] = loaded;
  const std::int64_t source_bytes = executor->source_bytes();
  std::optional<LoadedDraft> draft;  // its cache has as many blocks as the model's
  if (options.speculation && options.speculation->draft_model() != nullptr) {
    TRY(draft, load_draft(backend, options, executor->model().spec, scheduler));
  } else if (drafter) {
    TRY(draft, prepare_head(backend, options, *std::move(drafter), scheduler));
  } else if (options.speculation && options.speculation->place_heads() != nullptr) {
    TRY(draft, load_place_heads(*backend, options, executor->model()));
  }
  const std::int64_t draft_block_bytes = draft ? draft->block_bytes : 0;
  const bool pools = executor->pools();
  scheduler.max_steps_in_flight = std::max(executor->steps_in_flight(), options.pipeline_parallel_size);
  const Device& device = executor->device();
  // Texts that are read take few blocks, if any: for them an estimate is enough.
  const bool measures =
      !device.shares_host_memory() && options.kv_cache_memory_bytes == 0 && !options.num_blocks && !pools;
  if (measures) TRY_VOID(executor->rehearse());
  MemoryPlan memory = memory_of(options, device);
  int free_tokens = usual_free_tokens(device);
  if (options.speculation && state_bytes > 0)
    scheduler.draft_states =
        draft_policy(*options.speculation, scheduler.block_size, free_tokens).most_of_step(scheduler.max_num_seqs);
  memory.reserved = executor->later_bytes() + (draft ? draft->later_bytes() : 0);
  if (!pools || scheduler.enable_prefix_caching)
    TRY_VOID(plan_cache(options, memory, block_bytes + draft_block_bytes, state_bytes, source_bytes, scheduler));

  EngineInfo info;
  info.index = options.first_index + options.index;
  info.architecture = executor->model().spec.architecture;
  const int rank_count = options.rank_layout().size();
  info.weight_bytes = rank_count * static_cast<std::int64_t>(executor->model().weight_bytes);
  if (draft) info.weight_bytes += static_cast<std::int64_t>(draft->model().weight_bytes);
  if (const auto& ends = executor->model().ends) info.weight_bytes += static_cast<std::int64_t>(ends->weight_bytes);
  const int states = scheduler.max_num_seqs + scheduler.draft_states + scheduler.saved_states;
  info.cache_bytes = rank_count * (scheduler.num_blocks * block_bytes + states * state_bytes) +
                     scheduler.max_num_seqs * source_bytes + scheduler.num_blocks * draft_block_bytes;
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
    TRY(whole, RankedExecutor::create(std::move(ranks), std::move(executor), scheduler.num_blocks, states, caches));
  } else {
    TRY_VOID(executor->allocate_cache(scheduler.num_blocks, states, scheduler.max_num_seqs));
    whole = std::move(executor);
  }
  EngineParts parts{.executor = std::move(whole),
                    .vocabulary = hooks.vocabulary,
                    .seed = options.seed,
                    .after_step = hooks.after_step,
                    .kv_events = options.kv_events,
                    .kv_transfer = options.kv_transfer};
  if (options.speculation) {
    StepTimes times;
    // Where draft tokens have states, there are as many of these as was thought before.
    if (device.shares_host_memory() && scheduler.draft_states == 0 && options.speculation->per_batch_size.empty()) {
      TRY(times, measure_step_times(*parts.executor, scheduler, info.vocab_size));
      free_tokens = free_tokens_of(times);
    }
    parts.draft_policy = draft_policy(*options.speculation, scheduler.block_size, free_tokens, times);
    TRY(parts.proposer, make_proposer(backend, *options.speculation, local, std::move(draft), scheduler));
  }
  return Engine::start(std::move(scheduler), std::move(info), std::move(parts));
}

// A stand-in for the model: its network tells how long steps take and how large its cache would be.
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
  TRY(const DType cache_dtype, kv_cache_dtype(options.kv_cache_dtype, DType::bf16));
  const CacheLayout layout =
      cache_layout(spec, {options.block_size, cache_dtype, options.sliding_window_groups});
  TRY_VOID(layout.supported(reference.ops));
  SchedulerOptions scheduler =
      scheduler_options(options, layout, options.max_model_len.value_or(spec.max_positions));
  scheduler.max_steps_in_flight = 1;
  const std::int64_t block_bytes = layout.block_bytes(reference.ops);
  TRY_VOID(plan_cache(options, memory, block_bytes, layout.state_bytes(), 0, scheduler));

  EngineInfo info;
  info.index = options.first_index + options.index;
  info.architecture = spec.architecture;
  info.cache_bytes = scheduler.num_blocks * block_bytes;
  info.vocab_size = spec.vocab;
  info.max_queued = options.max_queued;
  info.max_logprobs = options.max_logprobs;
  log_info("simulated: {} blocks of {} tokens", scheduler.num_blocks, scheduler.block_size);
  return Engine::start(std::move(scheduler), std::move(info),
                       {.executor = std::make_unique<TimedExecutor>(timing, spec.vocab),
                        .vocabulary = hooks.vocabulary,
                        .seed = options.seed,
                        .after_step = hooks.after_step,
                        .kv_events = options.kv_events,
                        .kv_transfer = options.kv_transfer});
}

// Ranks are on processors, whatever devices there are.
EngineOptions with_device(EngineOptions options) {
  if (options.device == "auto" && options.rank_layout().size() > 1) options.device = "cpu";
  return options;
}

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& asked, const LoadHooks& hooks) {
  if (asked.executor != "local") return load_simulated(asked, hooks);
  TRY(const EngineOptions options, placed(with_device(asked), 0));
  const auto dressed = [&](Backend backend) {
    return hooks.dress ? hooks.dress(std::move(backend)) : std::move(backend);
  };
  TRY(Backend backend, make_backend(options));
  const bool may_fall_back = options.device == "auto" && backend.name == "cuda";
  const auto load_with = [&](Backend bare, const EngineOptions& on) {
    return load_on(std::make_shared<Backend>(dressed(std::move(bare))), on, hooks);
  };
  auto loaded = load_with(std::move(backend), options);
  if (loaded || !may_fall_back || loaded.error().code != ErrorCode::unsupported) return loaded;
  log_warning("not on the GPU but on the CPU: {}", loaded.error().message);
  EngineOptions on_cpu = options;
  on_cpu.device = "cpu";
  TRY(Backend cpu, make_backend(on_cpu));
  return load_with(std::move(cpu), on_cpu);
}

Result<> check_weights(const EngineOptions& options, const std::string& path) {
  TRY(LoadOptions load, load_options(options));
  load.weights = path;
  const Result<> fit = check_weights(options.model_dir, load);
  return fit ? fit : invalid("weights_path", "{}", fit.error().message);
}

Result<> run_rank(const EngineOptions& asked, int rank) {
  TRY(const EngineOptions options, placed(with_device(asked), rank));
  TRY_VOID(check_ranks(options));
  TRY(const auto ranks, Ranks::join(options, rank));
  TRY(Backend backend, make_backend(options));
  auto loaded = load_model(std::make_shared<Backend>(std::move(backend)), options, {}, ranks.get());
  TRY_VOID(ranks->agree(loaded ? Result<>() : std::unexpected(loaded.error())));
  return follow_rank_0(*loaded->executor, *ranks);
}

}  // namespace octavo
