#include "engine/local_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace octavo {
namespace {

// Rows of logits computed at a time. More rows mean fewer passes over the output matrix, and more memory: a
// row of a vocabulary of 256k entries is 1 MiB.
constexpr int kLogitRows = 256;

int logit_rows(int max_tokens) { return std::min(max_tokens, kLogitRows); }

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Appends an array to the staged inputs and says where on the device it will be.
template <class T>
View stage(std::vector<std::byte>& staging, const Buffer& device, std::span<const T> items) {
  const std::size_t offset = aligned(staging.size());
  staging.resize(offset + items.size_bytes());
  CHECK(staging.size() <= device.bytes(), "{} input bytes, room for {}", staging.size(), device.bytes());
  std::memcpy(staging.data() + offset, items.data(), items.size_bytes());
  return View::of(static_cast<std::byte*>(device.data()) + offset, dtype_of<T>,
                  {static_cast<std::int64_t>(items.size())});
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

std::int64_t LocalExecutor::step_bytes(const Model& model, const CacheLayout& layout, int max_tokens) {
  constexpr std::int64_t kPlanBytes = std::int64_t{160} << 20;  // partial states of attention and tables
  const std::int64_t rows = logit_rows(max_tokens);
  return workspace_bytes(model.spec, model.activation, {max_tokens, static_cast<int>(rows)}) +
         2 * rows * model.spec.vocab * 4 + std::ssize(layout.groups) * kPlanBytes;
}

LocalExecutor::LocalExecutor(Backend backend, std::unique_ptr<Model> model, CacheLayout layout,
                             const LocalExecutorOptions& options)
    : options_(options),
      backend_(std::move(backend)),
      model_(std::move(model)),
      layout_(std::move(layout)),
      sampler_(backend_, options.sampler) {}

Result<> LocalExecutor::allocate() {
  TRY(cache_, KvMemory::allocate(layout_, backend_, options_.blocks));
  const int rows = logit_rows(options_.max_tokens);
  TRY(Decoder decoder, Decoder::make(*model_, layout_, backend_, {options_.max_tokens, rows}));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  const AttentionLimits limits =
      attention_limits(*model_, layout_, options_.max_tokens, options_.max_sequences);
  for (std::size_t g = 0; g < layout_.groups.size(); ++g)
    plans_.push_back(backend_.ops.make_attention_plan(*backend_.device, limits));

  const auto tokens = static_cast<std::size_t>(options_.max_tokens);
  const std::size_t bytes = 2 * aligned(tokens * 4) + layout_.groups.size() * aligned(tokens * 8);
  TRY(inputs_, backend_.device->allocate(bytes));
  staging_.reserve(bytes);
  TRY(logit_rows_, backend_.device->allocate(static_cast<std::size_t>(rows) * 4));
  TRY(logits_, backend_.device->allocate(static_cast<std::size_t>(rows) *
                                         static_cast<std::size_t>(model_->spec.vocab) * 4));
  return {};
}

void LocalExecutor::forward(const Batch& batch) {
  CHECK(batch.pending.empty(), "this executor is not asynchronous");
  staging_.clear();
  ForwardBatch step;
  step.ids = stage(staging_, inputs_, std::span(batch.ids));
  step.positions = stage(staging_, inputs_, std::span(batch.positions));
  groups_.clear();
  for (std::size_t g = 0; g < batch.groups.size(); ++g) {
    const Batch::Group& group = batch.groups[g];
    groups_.push_back({plans_[g].get(), stage(staging_, inputs_, std::span(group.slots))});
    backend_.ops.plan_attention(
        *backend_.stream, {batch.query_starts, batch.lengths, group.tables, group.table_stride}, *plans_[g]);
  }
  step.groups = groups_;
  backend_.device->upload(*backend_.stream,
                          inputs_.view(DType::u8, {static_cast<std::int64_t>(staging_.size())}),
                          staging_.data());
  decoder_->forward(step, cache_.layers());
}

void LocalExecutor::sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  results_.clear();
  sampled_ = {};
  const auto chunk = static_cast<std::size_t>(logit_rows(options_.max_tokens));
  for (std::size_t begin = 0; begin < rows.size() && sampled_; begin += chunk) {
    const std::size_t count = std::min(chunk, rows.size() - begin);
    sampled_ = sample_chunk(tokens.subspan(begin, count), rows.subspan(begin, count));
  }
}

Result<> LocalExecutor::sample_chunk(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const View row_ids = logit_rows_.view(DType::i32, {count});
  const View logits = logits_.view(DType::f32, {count, model_->spec.vocab});
  backend_.device->upload(*backend_.stream, row_ids, tokens.data());
  decoder_->logits(row_ids, logits);
  TRY_VOID(sampler_.launch(logits, rows));
  for (const SampledToken& token : sampler_.collect()) results_.push_back(token);
  return {};
}

Result<std::span<const SampledToken>> LocalExecutor::collect() {
  if (!sampled_) return std::unexpected(sampled_.error());
  return std::span<const SampledToken>(results_);
}

}  // namespace octavo
