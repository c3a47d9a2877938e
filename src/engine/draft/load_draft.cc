#include "engine/draft/load_draft.h"

#include <algorithm>
#include <utility>

#include "engine/draft/draft_head.h"
#include "engine/draft/draft_model.h"
#include "engine/draft/ngram_proposer.h"
#include "engine/draft/position_drafter.h"
#include "engine/draft/suffix_proposer.h"
#include "engine/load/free_tokens.h"
#include "engine/option_values.h"

namespace octavo {
namespace {

// Maximum number of tokens in a pass of the draft model. While the draft model reads a prompt, a step waits
// for at most one pass of this size.
constexpr int kTokensOfPass = 256;

// The time of a GPU step is almost constant up to about this number of tokens, and proportional to the
// number of tokens above it. It is about the ratio of arithmetic speed to memory bandwidth, for weights of
// two bytes. On CPUs, the number is measured instead (engine/load/free_tokens.h).
constexpr int kFreeTokensOnDevice = 256;

}  // namespace

Result<LoadedDraft> load_draft(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                               const ModelSpec& target, const SchedulerOptions& scheduler) {
  constexpr std::string_view kField = "speculative_config";
  const DraftModelOptions& own = *options.speculation->draft_model();
  TRY(const ModelDType dtype, model_dtype(options.model.dtype));
  TRY(const Encoding encoding, quantization(own.quantization, own.model));
  TRY(const std::optional<DType> cache_dtype, kv_cache_dtype(options.cache.dtype));
  auto loaded = Model::load(own.model, *backend,
                            {.dtype = dtype,
                             .quantization = encoding,
                             .max_model_len = own.max_model_len,
                             .reading = {.runner = Runner::generate},
                             .threads = options.device.threads,
                             .block_size = options.cache.block_size,
                             .cache_dtype = cache_dtype});
  if (!loaded) {
    loaded.error().message = fmt::format("the draft model: {}", loaded.error().message);
    return std::unexpected(loaded.error());
  }
  std::unique_ptr<Model> model = *std::move(loaded);
  if (model->spec.has_cross())
    return field_failure(kField, ErrorCode::unsupported,
                         "the draft model ({}) has cross attention, but draft tokens are computed without "
                         "encoder outputs: use another draft model",
                         model->spec.architecture);
  if (model->spec.vocab != target.vocab)
    return invalid(kField,
                   "the draft model has a vocabulary of {} tokens, but the model has {}: both must have the "
                   "same vocabulary",
                   model->spec.vocab, target.vocab);
  const CacheLayout layout =
      cache_layout(model->spec, {.block_size = options.cache.block_size,
                                 .dtype = cache_dtype.value_or(model->activation),
                                 .window_groups = options.cache.sliding_window_groups});
  if (layout.state_floats > 0)
    return field_failure(kField, ErrorCode::unsupported,
                         "the draft model ({}) has recurrent layers, whose states cannot remove rejected "
                         "draft tokens: use another draft model",
                         model->spec.architecture);
  LoadedDraft draft{.block_bytes = layout.block_bytes(backend->ops),
                    .max_tokens = std::max(kTokensOfPass, 2 * scheduler.max_num_seqs)};
  for (const LayerGroup& group : layout.groups) draft.groups.push_back({group.window});
  TRY(draft.executor, LocalExecutor::create(backend, std::move(model), layout,
                                            {.max_tokens = draft.max_tokens,
                                             .max_sequences = scheduler.max_num_seqs,
                                             .asynchronous = false,
                                             .recorded = !options.device.enforce_eager}));
  return draft;
}

Result<Drafter> load_drafter(Backend& backend, const EngineOptions& options, const Model& target,
                             const CacheLayout& layout) {
  constexpr std::string_view kField = "speculative_config";
  const HeadOptions& own = *options.speculation->head();
  if (std::ranges::none_of(layout.groups, [](const LayerGroup& group) { return group.window == 0; }))
    return field_failure(
        kField, ErrorCode::unsupported,
        "a draft head with a KV cache needs a layer that caches the whole text, but {} has none: set "
        "--disable-hybrid-kv-cache-manager, so that layers with windows cache everything",
        target.spec.architecture);
  const std::string& beside =
      options.model.weights_dir.empty() ? options.model.dir : options.model.weights_dir;
  const std::string& path = own.model.empty() ? beside : own.model;
  LoadOptions load{.threads = options.device.threads, .block_size = options.cache.block_size};
  TRY(load.cache_dtype, kv_cache_dtype(options.cache.dtype));
  if (own.kind == HeadOptions::Kind::mtp) {
    TRY(load.quantization, quantization(options.model.quantization, options.model.dir));
    return load_predictor(path, target, backend, load);
  }
  return (own.kind == HeadOptions::Kind::eagle ? load_eagle : load_eagle3)(path, target, backend, load);
}

Result<LoadedDraft> prepare_head(const std::shared_ptr<Backend>& backend, const EngineOptions& options,
                                 Drafter drafter, const SchedulerOptions& scheduler) {
  TRY(const std::optional<DType> cache_dtype, kv_cache_dtype(options.cache.dtype));
  const CacheLayout layout =
      cache_layout(drafter.model->spec, {.block_size = options.cache.block_size,
                                         .dtype = cache_dtype.value_or(drafter.model->activation),
                                         .window_groups = false});
  const int draft_tokens = options.speculation->num_speculative_tokens;
  LoadedDraft draft{
      .block_bytes = layout.block_bytes(backend->ops),
      .max_tokens = scheduler.max_num_batched_tokens,
      .tokens = std::move(drafter.tokens),
      .own_blocks = (draft_tokens + options.cache.block_size - 1) / options.cache.block_size + 1};
  TRY(draft.executor, LocalExecutor::create(backend, std::move(drafter.model), layout,
                                            {.max_tokens = draft.max_tokens,
                                             .max_sequences = scheduler.max_num_seqs,
                                             .asynchronous = false,
                                             // No CUDA graphs: the first pass takes hidden states of the
                                             // target model, and later passes take hidden states of the
                                             // head, so one graph does not fit both.
                                             .recorded = false}));
  return draft;
}

Result<LoadedDraft> load_position_heads(Backend& backend, const EngineOptions& options, const Model& target) {
  const PositionHeadOptions& own = *options.speculation->position_heads();
  const bool medusa = own.kind == PositionHeadOptions::Kind::medusa;
  LoadedDraft draft;
  TRY(draft.position_heads, (medusa ? load_medusa : load_mlp_speculator)(
                                own.model, target, backend, {.threads = options.device.threads}));
  if (const int tokens = options.speculation->num_speculative_tokens;
      tokens > draft.position_heads->positions())
    return invalid("num_speculative_tokens", "must be at most {}, which is the number of heads of {}, got {}",
                   draft.position_heads->positions(), own.model, tokens);
  return draft;
}

Result<std::unique_ptr<Proposer>> make_proposer(const std::shared_ptr<Backend>& backend,
                                                const SpeculativeOptions& options,
                                                const LocalExecutor& target, std::optional<LoadedDraft> draft,
                                                const SchedulerOptions& scheduler) {
  if (const auto* ngram = std::get_if<NgramOptions>(&options.method))
    return std::make_unique<NgramProposer>(*ngram);
  if (const auto* suffix = std::get_if<SuffixOptions>(&options.method))
    return std::make_unique<SuffixProposer>(*suffix);
  if (const HeadOptions* head = options.head()) {
    const int own = draft->own_blocks * scheduler.max_num_seqs;
    TRY_VOID(draft->executor->allocate_cache(scheduler.num_blocks + own, scheduler.max_num_seqs));
    return std::make_unique<DraftHead>(target, std::move(draft->executor), std::move(draft->tokens),
                                       DraftHeadLimits{.block_size = scheduler.block_size,
                                                       .num_blocks = scheduler.num_blocks,
                                                       .own_blocks = draft->own_blocks,
                                                       .drawn = head->drawn});
  }
  if (const PositionHeadOptions* heads = options.position_heads())
    return PositionDrafter::create(backend, target, std::move(draft->position_heads), scheduler.max_num_seqs,
                                   heads->drawn);
  TRY_VOID(draft->executor->allocate_cache(scheduler.num_blocks, scheduler.max_num_seqs));
  const Model& model = draft->executor->model();
  const DraftModelLimits limits{.block_size = scheduler.block_size,
                                .num_blocks = scheduler.num_blocks,
                                .groups = std::move(draft->groups),
                                .prefix_hash = scheduler.prefix_hash,
                                .max_tokens = draft->max_tokens,
                                .max_model_len = model.max_model_len,
                                .vocab_size = model.spec.vocab,
                                .drawn = options.draft_model()->drawn};
  return std::make_unique<DraftModel>(std::move(draft->executor), limits);
}

int usual_free_tokens(const Device& device) {
  return device.shares_host_memory() ? kFreeTokensFewest : kFreeTokensOnDevice;
}

// A head can start to read the text only at the beginning of a block, and must read some tokens before it can
// propose any.
DraftPolicy draft_policy(const SpeculativeOptions& options, int block_size, int free_tokens,
                         const StepTimes& times) {
  return DraftPolicy({.most = options.num_speculative_tokens,
                      .free_tokens = free_tokens,
                      .per_batch_size = options.per_batch_size,
                      .by_acceptance = options.per_batch_size.empty(),
                      .times = times,
                      .lead = options.head() != nullptr ? 2 * block_size : 0});
}

}  // namespace octavo
