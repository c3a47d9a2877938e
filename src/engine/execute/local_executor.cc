#include "engine/execute/local_executor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace octavo {

Result<> LocalExecutor::forward(const Batch& batch) {
  if (experts_) TRY_VOID(experts_->begin(batch.tokens()));
  if (balancer_) balancer_->before_step();
  CHECK(batch.pending.empty() || options_.asynchronous, "this executor is not asynchronous");
  // A step with images or a complete prompt cannot use a CUDA graph.
  const int size = !batch.images.empty() || !batch.wholes.empty() ? 0 : recordings_.size_of(batch);
  const bool adapted = adapters_.begin_step(batch, size > 0);
  TRY_VOID(pack(batch, size, adapted));

  Stream& stream = *backend_.stream;
  const auto device = [&](const auto& part) { return inputs_->device(part); };
  const StepAdapters adapters = adapted ? step_adapters(size) : StepAdapters{};
  const ForwardBatch step{.ids = device(inputs_->ids),
                          .positions = device(inputs_->positions),
                          .axes = inputs_->axes_of(batch),
                          .token_types = device(inputs_->types),
                          .groups = plans_->groups(*inputs_),
                          .states = step_states(),
                          .adapters = adapted ? &adapters : nullptr,
                          .images = media_ ? media_->images() : std::span<const ImageRows>(),
                          .wholes = plans_->wholes(),
                          .cross = media_ ? media_->cross() : CrossBatch{}};
  copy_states(batch.restored_states);
  const View between = decoder_->handed_on(batch.tokens());
  if (options_.ranks != nullptr) hand_on(options_.ranks->from_stage_before.get(), between);
  TRY_VOID(ranks_status());
  const auto run = [&] { decoder_->forward(step, cache_.layers()); };
  size > 0 ? (adapted ? adapters_.recordings() : recordings_).run(stream, size, run) : run();
  copy_states(batch.saved_states);
  steps_begun_ = stream.mark();
  if (options_.ranks != nullptr) hand_on(options_.ranks->to_stage_behind.get(), between);
  return ranks_status();
}

Result<> LocalExecutor::assist() {
  TRY_VOID(experts_->begin(0));
  if (experts_->left()) return {};
  if (balancer_) balancer_->before_step();
  decoder_->assist();
  return ranks_status();
}

void LocalExecutor::leave() {
  if (experts_) experts_->leave();
}

// Writes the inputs of the step and uploads them. The device copies tokens that are still being sampled
// from the sampler's memory to the inputs.
Result<> LocalExecutor::pack(const Batch& batch, int size, bool adapted) {
  const auto tokens = static_cast<std::size_t>(size > 0 ? size : batch.tokens());
  TRY_VOID(inputs_->begin(tokens, batch.pending.size(), backend_));
  inputs_->pack(batch, cache_size_.blocks * layout_.block_size);
  for (std::size_t g = 0; g < layout_.groups.size(); ++g)
    if (const auto& slots = batch.groups[g].slots; !slots.empty())
      cache_.used(std::ranges::max(slots) / layout_.block_size);
  const auto pending = static_cast<std::int64_t>(sampling_.resolve(batch, *inputs_));
  if (adapted) {
    const LocalAdapters::Sorted& sorted = adapters_.tokens();
    inputs_->pack_adapters(sorted.numbers, sorted.starts);
  }
  if (media_) media_->place(batch, *inputs_);
  plans_->plan(batch, size);
  inputs_->pack_states(batch, plans_->query_starts());
  if (media_) media_->plan(plans_->query_starts(), batch.sources, size > 0);
  TRY_VOID(plans_->plan_wholes(batch));
  inputs_->upload(backend_);
  if (pending > 0)
    backend_.ops.put_sampled(*backend_.stream,
                             {.ids = inputs_->device(inputs_->ids),
                              .tokens = inputs_->device(inputs_->pending_tokens).rows(0, pending),
                              .sampled = sampling_.ids(),
                              .rows = inputs_->device(inputs_->pending_rows).rows(0, pending)});
  return {};
}

// `size`: size of the CUDA graph, whose views must not depend on the number of tokens with adapters; 0: none.
StepAdapters LocalExecutor::step_adapters(int size) const {
  const LocalAdapters::Sorted& sorted = adapters_.tokens();
  const std::int64_t tokens = size > 0 ? size : std::ssize(sorted.numbers);
  return {.adapters = sorted.adapters,
          .starts = inputs_->device(inputs_->adapter_starts).rows(0, std::ssize(sorted.starts)),
          .tokens = inputs_->device(inputs_->adapter_tokens).rows(0, tokens)};
}

StateBatch LocalExecutor::step_states() const {
  if (layout_.state_floats == 0) return {};
  const std::int64_t sequences = plans_->sequences();
  return {.memory = cache_.states(),
          .slots = inputs_->device(inputs_->state_slots).rows(0, sequences),
          .starts = inputs_->device(inputs_->state_starts).rows(0, sequences + 1),
          .copies = inputs_->device(inputs_->state_copies)};
}

Result<> LocalExecutor::ranks_status() const {
  return options_.ranks != nullptr ? options_.ranks->status() : Result<>();
}

void LocalExecutor::hand_on(ProcessGroup* stages, const View& rows) {
  if (stages == nullptr) return;
  stages->broadcast(
      std::span(reinterpret_cast<std::byte*>(rows.as<float>()), static_cast<std::size_t>(rows.bytes())));
}

void LocalExecutor::copy_states(std::span<const Batch::StateCopy> copies) {
  // no states to copy: the layers with recurrent states are in another pipeline stage
  if (layout_.state_floats == 0) return;
  for (const Batch::StateCopy& copy : copies)
    backend_.device->copy(*backend_.stream, cache_.states().rows(copy.to, 1),
                          cache_.states().rows(copy.from, 1));
}

// If there are more rows than fit into one pass, the host waits between the passes. This happens only with
// prompt logprobs.
Result<> LocalExecutor::sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  sampling_.begin(tokens, rows, *plans_);
  for (std::size_t begin = 0; begin < rows.size(); begin += logit_rows_.most()) {
    (void)sampling_.collect();
    const std::size_t count = std::min(logit_rows_.most(), rows.size() - begin);
    TRY(const View logits, chunk_logits(tokens.subspan(begin, count)));
    TRY_VOID(sampling_.launch(logits, rows.subspan(begin, count)));
  }
  return {};
}

Result<std::span<SampledToken>> LocalExecutor::collect() {
  const std::span<SampledToken> tokens = sampling_.collect();
  // An exchange of values on the device fails while the device runs the step.
  if (device_ranks_.on_stream) TRY_VOID(ranks_status());
  return tokens;
}

// Computes the rows in the same chunks as sample() on rank 0, because the ranks exchange messages in each
// chunk.
Result<> LocalExecutor::give_logits(std::span<const std::int32_t> tokens) {
  for (std::size_t begin = 0; begin < tokens.size(); begin += logit_rows_.most())
    TRY_VOID(chunk_logits(tokens.subspan(begin, std::min(logit_rows_.most(), tokens.size() - begin))));
  return {};
}

Result<View> LocalExecutor::chunk_logits(std::span<const std::int32_t> tokens) {
  const View logits = logit_rows_.results(std::ssize(tokens), model_->spec.vocab);
  const LocalAdapters::Sorted& sorted = adapters_.sort_rows(tokens, *plans_);
  TRY(const auto uploaded, logit_rows_.upload(backend_, tokens, sorted.numbers, sorted.starts));
  const StepAdapters adapters{
      .adapters = sorted.adapters, .starts = uploaded.adapter_starts, .tokens = uploaded.by_adapter};
  decoder_->logits(uploaded.rows, logits, sorted.adapters.empty() ? nullptr : &adapters);
  TRY_VOID(ranks_status());
  return logits;
}

Result<> LocalExecutor::read_hidden(const LocalExecutor& from, std::span<const std::int32_t> rows) {
  TRY(const auto uploaded, logit_rows_.upload(backend_, rows));
  decoder_->read_hidden(*from.decoder_, uploaded.rows);
  return {};
}

Result<std::span<const float>> LocalExecutor::pool(std::span<const std::int32_t> starts,
                                                   std::span<const std::uint8_t> heads) {
  const auto size_of = [&](std::uint8_t head) {
    return static_cast<std::size_t>(pooled_size(model_->spec, head));
  };
  std::size_t numbers = 0, done = 0;
  for (const std::uint8_t head : heads) numbers += size_of(head);
  pooled_.resize(numbers);
  decoder_->norm_rows();
  for (std::size_t begin = 0, count = 0; begin < heads.size(); begin += count) {
    const std::uint8_t head = heads[begin];
    if (model_->spec.head_at(head).of_tokens) {
      count = 1;
      TRY_VOID(pool_tokens(head, starts[begin], starts[begin + 1],
                           std::span(pooled_).subspan(done, size_of(head))));
      done += size_of(head);
      continue;
    }
    const auto rest = heads.subspan(begin, std::min(logit_rows_.most(), heads.size() - begin));
    count = static_cast<std::size_t>(
        std::ranges::find_if(rest, [&](std::uint8_t other) { return other != head; }) - rest.begin());
    TRY(const auto uploaded, logit_rows_.upload(backend_, starts.subspan(begin, count + 1)));
    const View out =
        logit_rows_.results(static_cast<std::int64_t>(count), static_cast<std::int64_t>(size_of(head)));
    decoder_->pool(uploaded.rows, head, out);
    backend_.device->download(*backend_.stream, pooled_.data() + done, out);
    backend_.stream->synchronize();
    done += count * size_of(head);
  }
  return std::span<const float>(pooled_);
}

// Computes the output of a head with Head::of_tokens for the tokens [first, end).
Result<> LocalExecutor::pool_tokens(std::uint8_t head, std::int32_t first, std::int32_t end,
                                    std::span<float> out) {
  std::ranges::fill(out, 0.0F);
  std::vector<std::int32_t> starts;
  std::vector<float> numbers;
  while (first < end) {
    const auto count = std::min<std::int32_t>(end - first, static_cast<std::int32_t>(logit_rows_.most()));
    starts.resize(static_cast<std::size_t>(count) + 1);
    std::iota(starts.begin(), starts.end(), first);
    TRY(const auto uploaded, logit_rows_.upload(backend_, starts));
    const View rows = logit_rows_.results(count, std::ssize(out));
    decoder_->pool(uploaded.rows, head, rows);
    numbers.resize(static_cast<std::size_t>(count) * out.size());
    backend_.device->download(*backend_.stream, numbers.data(), rows);
    backend_.stream->synchronize();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      float& most = out[i % out.size()];
      if (!(numbers[i] <= most) && !std::isnan(most)) most = numbers[i];  // keeps NaN
    }
    first += count;
  }
  for (float& x : out) x = std::log1p(x);
  return {};
}

}  // namespace octavo
