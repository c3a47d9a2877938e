#include "engine/local_executor.h"

#include <algorithm>

namespace octavo {
namespace {

// Rows of logits computed at a time, if no more sequences decode together. More rows mean fewer passes over
// the output matrix, and more memory: a row of a vocabulary of 256k entries is 1 MiB.
constexpr int kLogitRows = 256;

int logit_rows(const LocalExecutorOptions& options) {
  return std::min(options.max_tokens, std::max(kLogitRows, options.max_sequences));
}

template <class T>
void put(std::span<T> to, std::span<const T> items, T rest) {
  std::ranges::fill(std::ranges::copy(items, to.begin()).out, to.end(), rest);
}

}  // namespace

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::create(Backend backend, std::unique_ptr<Model> model,
                                                             CacheLayout layout,
                                                             const LocalExecutorOptions& options) {
  std::unique_ptr<LocalExecutor> executor(
      new LocalExecutor(std::move(backend), std::move(model), std::move(layout), options));
  TRY_VOID(executor->allocate());
  return executor;
}

LocalExecutor::LocalExecutor(Backend backend, std::unique_ptr<Model> model, CacheLayout layout,
                             const LocalExecutorOptions& options)
    : options_(options),
      backend_(std::move(backend)),
      model_(std::move(model)),
      layout_(std::move(layout)),
      sampler_(backend_, options.sampler),
      recordings_(backend_.stream->asynchronous() && options.recorded
                      ? std::min(options.max_sequences, options.max_tokens)
                      : 0) {
  options_.asynchronous &= backend_.stream->asynchronous();
}

Result<> LocalExecutor::allocate() {
  const int rows = logit_rows(options_);
  TRY(Decoder decoder, Decoder::make(*model_, layout_, backend_, {options_.max_tokens, rows}));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  const AttentionLimits limits =
      attention_limits(*model_, layout_, options_.max_tokens, options_.max_sequences);
  for (std::size_t g = 0; g < layout_.groups.size(); ++g)
    plans_.push_back(backend_.ops.make_attention_plan(*backend_.device, limits));

  // Now as large as they will ever be: recordings know their places.
  const auto tokens = static_cast<std::size_t>(options_.max_tokens);
  const auto sequences = static_cast<std::size_t>(options_.max_sequences);
  inputs_.slots.resize(layout_.groups.size());
  lay_out_inputs(tokens, sequences);
  TRY_VOID(inputs_memory_.fit(*backend_.device, *backend_.stream));
  row_memory_.add<std::int32_t>(static_cast<std::size_t>(rows));
  TRY_VOID(row_memory_.fit(*backend_.device, *backend_.stream));
  TRY(logits_, backend_.device->allocate(static_cast<std::size_t>(rows) *
                                         static_cast<std::size_t>(model_->spec.vocab) * 4));
  groups_.reserve(layout_.groups.size());
  query_starts_.reserve(sequences + 1);
  lengths_.reserve(sequences);
  sequences_.reserve(sequences);
  owners_.reserve(sequences);
  return {};
}

// Padding's keys and values go to a block of their own, which nobody reads.
Result<> LocalExecutor::allocate_cache(std::int64_t blocks) {
  blocks_ = blocks;
  TRY(cache_, KvMemory::allocate(layout_, backend_, blocks + (recordings_.sizes().empty() ? 0 : 1)));
  return {};
}

std::int64_t LocalExecutor::later_bytes() const {
  constexpr std::int64_t kRecordingsAndCode = std::int64_t{512} << 20;
  const std::int64_t raw_logits = std::int64_t{logit_rows(options_)} * model_->spec.vocab * 4;
  return backend_.stream->asynchronous() ? kRecordingsAndCode + raw_logits : 0;
}

void LocalExecutor::lay_out_inputs(std::size_t tokens, std::size_t pending) {
  inputs_memory_.clear();
  inputs_.ids = inputs_memory_.add<std::int32_t>(tokens);
  inputs_.positions = inputs_memory_.add<std::int32_t>(tokens);
  for (auto& slots : inputs_.slots) slots = inputs_memory_.add<std::int64_t>(tokens);
  inputs_.pending_tokens = inputs_memory_.add<std::int32_t>(pending);
  inputs_.pending_rows = inputs_memory_.add<std::int32_t>(pending);
}

void LocalExecutor::forward(const Batch& batch) {
  const int size = recordings_.size_of(batch);  // 0: as it is
  CHECK(batch.pending.empty() || options_.asynchronous, "this executor is not asynchronous");
  lay_out_inputs(static_cast<std::size_t>(size > 0 ? size : batch.tokens()), batch.pending.size());
  const auto fitted = inputs_memory_.fit(*backend_.device, *backend_.stream);
  CHECK(fitted.has_value());
  pack(batch);
  const std::size_t pending = resolve(batch);
  plan(batch, size);

  Stream& stream = *backend_.stream;
  inputs_memory_.upload(*backend_.device, stream);
  const auto device = [&](const auto& part) { return inputs_memory_.device(part); };
  if (pending > 0) {
    const auto count = static_cast<std::int64_t>(pending);
    backend_.ops.put_sampled(stream, {.ids = device(inputs_.ids),
                                      .tokens = device(inputs_.pending_tokens).rows(0, count),
                                      .sampled = sampler_.ids(),
                                      .rows = device(inputs_.pending_rows).rows(0, count)});
  }
  groups_.clear();
  for (std::size_t g = 0; g < plans_.size(); ++g)
    groups_.push_back({plans_[g].get(), device(inputs_.slots[g])});
  const auto run = [&] {
    decoder_->forward({device(inputs_.ids), device(inputs_.positions), groups_}, cache_.layers());
  };
  size > 0 ? recordings_.run(stream, size, run) : run();
}

void LocalExecutor::pack(const Batch& batch) {
  put<std::int32_t>(inputs_memory_.host(inputs_.ids), batch.ids, 0);
  put<std::int32_t>(inputs_memory_.host(inputs_.positions), batch.positions, 0);
  for (std::size_t g = 0; g < plans_.size(); ++g)
    put<std::int64_t>(inputs_memory_.host(inputs_.slots[g]), batch.groups[g].slots,
                      blocks_ * layout_.kv.block_size);
}

// Finds the tokens that were still being sampled when the step was planned. Returns how many still are,
// having listed them among the inputs.
std::size_t LocalExecutor::resolve(const Batch& batch) {
  const auto ids = inputs_memory_.host(inputs_.ids);
  const auto tokens = inputs_memory_.host(inputs_.pending_tokens);
  const auto rows = inputs_memory_.host(inputs_.pending_rows);
  std::size_t count = 0;
  for (const Batch::Pending& p : batch.pending) {
    const SequenceId sequence = batch.sequences[static_cast<std::size_t>(p.sequence)];
    const auto owner =
        std::ranges::lower_bound(owners_, sequence, {}, &std::pair<SequenceId, std::int32_t>::first);
    CHECK(owner != owners_.end() && owner->first == sequence, "a pending token that nobody samples");
    const auto row = static_cast<std::size_t>(owner->second);
    if (row < results_.size()) {
      ids[static_cast<std::size_t>(p.token)] = std::max(results_[row].id, 0);
    } else {
      tokens[count] = p.token;
      rows[count++] = static_cast<std::int32_t>(row - results_.size());
    }
  }
  return count;
}

// Sequences that are padding have no query and nothing cached.
void LocalExecutor::plan(const Batch& batch, int size) {
  sequences_.assign(batch.sequences.begin(), batch.sequences.end());
  query_starts_.assign(batch.query_starts.begin(), batch.query_starts.end());
  lengths_.assign(batch.lengths.begin(), batch.lengths.end());
  if (size > 0) {
    query_starts_.resize(static_cast<std::size_t>(size) + 1, query_starts_.back());
    lengths_.resize(static_cast<std::size_t>(size), 0);
  }
  for (std::size_t g = 0; g < plans_.size(); ++g) {
    const Batch::Group& group = batch.groups[g];
    backend_.ops.plan_attention(*backend_.stream,
                                {.query_starts = query_starts_,
                                 .lengths = lengths_,
                                 .block_tables = group.tables,
                                 .table_stride = group.table_stride,
                                 .recorded = size > 0},
                                *plans_[g]);
  }
}

// Rows beyond those that are computed at a time make the host wait: only prompts' log-probabilities are so
// many.
void LocalExecutor::sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  results_.clear();
  sampled_ = {};
  note_owners(tokens, rows);
  const auto chunk = static_cast<std::size_t>(logit_rows(options_));
  for (std::size_t begin = 0; begin < rows.size() && sampled_; begin += chunk) {
    take_chunk();
    const std::size_t count = std::min(chunk, rows.size() - begin);
    sampled_ = sample_chunk(tokens.subspan(begin, count), rows.subspan(begin, count));
  }
}

void LocalExecutor::note_owners(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  owners_.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].forced >= 0) continue;
    const auto after = std::ranges::upper_bound(query_starts_, tokens[r]);
    const auto sequence = static_cast<std::size_t>(after - query_starts_.begin()) - 1;
    owners_.emplace_back(sequences_[sequence], static_cast<std::int32_t>(r));
  }
  std::ranges::sort(owners_);
}

Result<> LocalExecutor::sample_chunk(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  row_memory_.clear();
  const auto part = row_memory_.add<std::int32_t>(rows.size());
  TRY_VOID(row_memory_.fit(*backend_.device, *backend_.stream));
  std::ranges::copy(tokens, row_memory_.host(part).begin());
  row_memory_.upload(*backend_.device, *backend_.stream);
  const View logits = logits_.view(DType::f32, {static_cast<std::int64_t>(rows.size()), model_->spec.vocab});
  decoder_->logits(row_memory_.device(part), logits);
  TRY_VOID(sampler_.launch(logits, rows));
  sampling_ = true;
  return {};
}

void LocalExecutor::take_chunk() {
  if (!std::exchange(sampling_, false)) return;
  for (SampledToken& token : sampler_.collect()) results_.push_back(std::move(token));
}

Result<std::span<const SampledToken>> LocalExecutor::collect() {
  if (!sampled_) return std::unexpected(sampled_.error());
  take_chunk();
  return std::span<const SampledToken>(results_);
}

}  // namespace octavo
