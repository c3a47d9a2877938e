// Memory of a LocalExecutor: workspaces, the KV cache, and the estimate of later allocations.
#include <algorithm>

#include "base/log.h"
#include "engine/execute/local_executor.h"

namespace octavo {
namespace {

// Maximum number of logit rows in a pass, unless max_sequences is larger. More rows need more memory (1 MiB
// for each row with a vocabulary of 256k), but the output matrix is read less often.
constexpr int kLogitRows = 256;

int logit_rows(const LocalExecutorOptions& options) {
  return std::min(options.max_tokens, std::max(kLogitRows, options.max_sequences));
}

// Maximum number of sequences of a step that is a CUDA graph; 0: no CUDA graphs.
int recorded_sequences(const Backend& backend, const LocalExecutorOptions& options) {
  if (!backend.stream->asynchronous() || !options.recorded) return 0;
  return std::min(options.max_sequences, options.max_tokens);
}

}  // namespace

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::create(std::shared_ptr<Backend> backend,
                                                             std::unique_ptr<Model> model, CacheLayout layout,
                                                             const LocalExecutorOptions& options,
                                                             DeviceGroups device_ranks) {
  std::unique_ptr<LocalExecutor> executor(new LocalExecutor(
      std::move(backend), std::move(model), std::move(layout), options, std::move(device_ranks)));
  TRY_VOID(executor->allocate());
  return executor;
}

LocalExecutor::LocalExecutor(std::shared_ptr<Backend> backend, std::unique_ptr<Model> model,
                             CacheLayout layout, const LocalExecutorOptions& options,
                             DeviceGroups device_ranks)
    : options_(options),
      shared_backend_(std::move(backend)),
      backend_(*shared_backend_),
      device_ranks_(std::move(device_ranks)),
      model_(std::move(model)),
      layout_(std::move(layout)),
      recordings_(recorded_sequences(backend_, options)),
      adapters_(*model_, backend_, options.max_adapters, options.max_adapter_rank,
                recorded_sequences(backend_, options)),
      sampling_(backend_, options.sampler) {
  options_.asynchronous &= backend_.stream->asynchronous();
  if (options_.ranks != nullptr && !backend_.device->shares_host_memory())
    options_.ranks = &device_ranks_.groups;
}

Result<> LocalExecutor::allocate() {
  const int rows = logit_rows(options_);
  const ModelSpec& spec = model_->spec;
  TRY(Decoder decoder,
      Decoder::make(*model_, layout_, backend_,
                    {options_.max_tokens, rows, options_.max_adapter_rank, options_.kept_layers},
                    options_.ranks != nullptr ? options_.ranks->tensor.get() : nullptr));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  if (options_.ranks != nullptr && options_.ranks->experts)
    decoder_->share_experts(experts_.emplace(*options_.ranks->experts, spec.shard, model_->activation));
  TRY(StepPlans plans,
      StepPlans::create(*model_, layout_, backend_, options_.max_tokens, options_.max_sequences));
  plans_.emplace(std::move(plans));
  if (!pools()) TRY_VOID(sampling_.reserve(rows, spec.vocab, options_.max_sequences));
  if (options_.prompt_embeds) {
    media_ = LocalMedia::of_embeds(backend_, spec.dim);
  } else {
    TRY(media_, LocalMedia::create(*model_, layout_, backend_, options_.max_tokens, options_.max_sequences));
  }

  const std::size_t adapters = adapters_.slots();
  inputs_.emplace(StepInputs::Shape{.groups = layout_.groups.size(),
                                    .types = spec.embedding.token_types > 0,
                                    .axes = spec.has_axes(),
                                    .states = layout_.state_floats > 0,
                                    .images = media_ && media_->has_rows(),
                                    .adapters = adapters});
  // Allocates the inputs for the largest step now, because CUDA graphs contain their addresses.
  const auto tokens = static_cast<std::size_t>(options_.max_tokens);
  const auto sequences = static_cast<std::size_t>(options_.max_sequences);
  TRY_VOID(inputs_->begin(tokens, sequences, backend_));
  int widest = pools() ? 0 : spec.vocab;
  for (std::size_t head = 0; head < spec.heads(); ++head) widest = std::max(widest, pooled_size(spec, head));
  const auto columns = static_cast<std::size_t>(widest);
  if (pools()) pooled_.reserve(sequences * columns);
  return logit_rows_.reserve(static_cast<std::size_t>(rows), columns, adapters, backend_);
}

Result<> LocalExecutor::allocate_cache(std::int64_t blocks, std::int64_t state_slots, std::int64_t sources,
                                       KeptBlocks kept) {
  cache_size_.blocks = blocks;
  cache_size_.state_slots = state_slots;
  if (options_.expert_balancing.enabled) {
    const RankGroups& ranks = *options_.ranks;
    ProcessGroup& group = ranks.experts ? *ranks.experts : *ranks.tensor;
    TRY(balancer_, ExpertBalancer::create(options_.expert_balancing, *model_, group));
  }
  if (media_) TRY_VOID(media_->allocate_sources(sources));
  return allocate_blocks(std::move(kept));
}

// Adds one block to the cache. Padding tokens write their keys and values to this block, and no query reads
// it.
Result<> LocalExecutor::allocate_blocks(KeptBlocks kept) {
  TRY(cache_,
      KvMemory::allocate(layout_, backend_, cache_size_.blocks + (recordings_.sizes().empty() ? 0 : 1),
                         cache_size_.state_slots, options_.shared_cache, std::move(kept)));
  cache_.prefault();
  return {};
}

Result<> LocalExecutor::rehearse() {
  std::vector<int> texts;
  for (int left = options_.max_tokens; left > 0 && std::ssize(texts) < options_.max_sequences;
       left -= texts.back())
    texts.push_back(std::min(left, model_->max_model_len));
  const int most = std::min(options_.max_sequences, options_.max_tokens);
  const std::vector<int> decoding(
      static_cast<std::size_t>(recordings_.sizes().empty() ? most : recordings_.sizes().back()), 1);
  const std::int64_t blocks = options_.max_tokens / layout_.block_size + options_.max_sequences;
  // One encoder input suffices, because all sequences may use the same one.
  TRY_VOID(allocate_cache(blocks, options_.max_sequences, source_bytes() > 0 ? 1 : 0));
  const auto available = [&] { return static_cast<std::int64_t>(backend_.device->available_bytes()); };
  TRY_VOID(rehearse_step(texts));
  TRY_VOID(rehearse_step(decoding));
  const std::int64_t before = available();
  // The first run loads the kernels, the second run captures the CUDA graph.
  if (!recordings_.sizes().empty()) TRY_VOID(rehearse_step(decoding));
  const std::int64_t bytes_each = std::max<std::int64_t>(before - available(), 0);
  recordings_.measured(bytes_each);
  recordings_.forget();
  cache_ = {};
  cache_size_.blocks = 0;
  if (media_) TRY_VOID(media_->allocate_sources(0));
  log_info("after the largest steps, {} MiB of {} MiB are free; each CUDA graph needs {} KiB",
           available() >> 20, backend_.device->memory_bytes() >> 20, bytes_each >> 10);
  return {};
}

// Uses all features of the sampler except penalties, whose memory grows with the length of the text.
Result<> LocalExecutor::rehearse_step(std::span<const int> texts) {
  const int vocab = static_cast<int>(model_->spec.vocab);
  Batch batch = new_texts(texts, static_cast<int>(layout_.groups.size()), layout_.block_size, vocab);
  if (source_bytes() > 0) batch.sources.assign(texts.size(), 0);
  TRY_VOID(forward(batch));
  if (pools()) {
    TRY_VOID(pool(batch.query_starts, std::vector<std::uint8_t>(texts.size())));
    return {};
  }
  SamplingParams params;
  params.top_p = 0.9;
  params.top_k = std::min(vocab, 50);
  params.logprobs.output = std::min(vocab, 20);
  const SequenceSampling sampling(params, {}, {}, 0, vocab);
  const std::vector<std::int32_t> mask(static_cast<std::size_t>((vocab + 31) / 32), -1);
  std::vector<std::int32_t> last;
  for (std::size_t s = 0; s < texts.size(); ++s) last.push_back(batch.query_starts[s + 1] - 1);
  const std::vector<SampleRow> rows(last.size(), {.sequence = &sampling, .output = {}, .mask = mask});
  TRY_VOID(sample(last, rows));
  TRY_VOID(collect());
  backend_.stream->synchronize();
  sampling_.forget();
  return {};
}

Result<BlockFormat> LocalExecutor::block_format() const {
  if (!cache_.exchanges())
    return field_failure("kv_transfer_config", ErrorCode::unsupported,
                         "is not supported on the device {}, because its KV blocks cannot be transferred",
                         backend_.name);
  if (layout_.state_floats > 0 && !backend_.device->shares_host_memory())
    return field_failure("kv_transfer_config", ErrorCode::unsupported,
                         "is not supported on the device {} for models with recurrent layers", backend_.name);
  BlockFormat format{.fingerprint = options_.fingerprint,
                     .dtype = std::string(layout_.groups.empty() ? "" : name(layout_.groups[0].kv.dtype)),
                     .block_size = layout_.block_size};
  cache_.pieces().describe(format);
  return format;
}

Result<> LocalExecutor::release_cache() {
  if (device().shares_host_memory()) {
    cache_.release();
    return {};
  }
  backend_.stream->synchronize();
  recordings_.forget();  // CUDA graphs contain the addresses of the cache
  adapters_.recordings().forget();
  cache_ = {};
  return {};
}

Result<> LocalExecutor::restore_cache() {
  return device().shares_host_memory() ? Result<>() : allocate_blocks({});
}

std::int64_t LocalExecutor::later_bytes() const {
  // Estimates in bytes. kRecordingsAndCode is used if rehearse() was not called. kRest covers memory that
  // rehearse() does not use, such as masks, histories, and kernels for other numbers of rows.
  constexpr std::int64_t kRecordingsAndCode = std::int64_t{512} << 20, kRest = std::int64_t{128} << 20;
  const std::int64_t media = media_ ? media_->later_bytes(model_->max_model_len) : 0;
  // A step with adapters has about three times as many kernels, because it adds two products of each adapter
  // to each product.
  const std::int64_t recordings = (adapters_.enabled() ? 4 : 1) * recordings_.bytes().value_or(0);
  const std::int64_t own = recordings_.bytes() ? kRest + recordings : kRecordingsAndCode;
  return adapters_.bytes_max() + media + (backend_.stream->asynchronous() ? own : 0);
}

}  // namespace octavo
