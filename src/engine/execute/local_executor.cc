#include "engine/execute/local_executor.h"

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "engine/media/image_encoder.h"
#include "engine/media/sound_rows.h"
#include "engine/media/tiled_image_encoder.h"

namespace octavo {
namespace {

// Minimum number of logit rows computed at a time. More rows need fewer passes over the output matrix and
// more memory: a row with 256k vocabulary entries takes 1 MiB.
constexpr int kLogitRows = 256;

int logit_rows(const LocalExecutorOptions& options) {
  return std::min(options.max_tokens, std::max(kLogitRows, options.max_sequences));
}

template <class T>
void put(std::span<T> to, std::span<const T> items, T rest) {
  std::ranges::fill(std::ranges::copy(items, to.begin()).out, to.end(), rest);
}

constexpr std::size_t kAxes = std::tuple_size_v<GridPositions>;

View in_rows(const View& all, std::size_t rows) {
  const auto count = static_cast<std::int64_t>(rows);
  return View::of(all.data, all.dtype, {count, all.size(0) / count});
}

Result<std::unique_ptr<RowEncoder>> make_row_encoder(const Model& tower, Backend& backend) {
  if (tower.spec.sound) return SoundRows::create(tower, backend);
  if (tower.spec.image->tiled) return TiledImageEncoder::create(tower, backend);
  return ImageEncoder::create(tower, backend);
}

}  // namespace

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::create(std::shared_ptr<Backend> backend,
                                                             std::unique_ptr<Model> model, CacheLayout layout,
                                                             const LocalExecutorOptions& options) {
  std::unique_ptr<LocalExecutor> executor(
      new LocalExecutor(std::move(backend), std::move(model), std::move(layout), options));
  TRY_VOID(executor->allocate());
  return executor;
}

LocalExecutor::LocalExecutor(std::shared_ptr<Backend> backend, std::unique_ptr<Model> model,
                             CacheLayout layout, const LocalExecutorOptions& options)
    : options_(options),
      shared_backend_(std::move(backend)),
      backend_(*shared_backend_),
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
  TRY(Decoder decoder,
      Decoder::make(*model_, layout_, backend_,
                    {options_.max_tokens, rows, options_.max_adapter_rank, options_.kept_layers},
                    options_.ranks != nullptr ? options_.ranks->tensor.get() : nullptr));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  for (const LayerGroup& group : layout_.groups) {
    TRY(auto plan,
        backend_.ops.make_attention_plan(
            *backend_.device, attention_limits(*model_, group, options_.max_tokens, options_.max_sequences)));
    plans_.push_back(std::move(plan));
  }
  if (!pools()) TRY_VOID(sampler_.reserve(rows, model_->spec.vocab));

  if (options_.max_adapters > 0)
    reader_.emplace(model_->spec, model_->activation, options_.max_adapter_rank,
                    device().shares_host_memory() && model_->spec.shard.size == 1);
  if (model_->spec.has_cross()) {
    TRY(source_encoder_,
        SourceEncoder::create(*model_, layout_, backend_, options_.max_tokens, options_.max_sequences));
  } else if (model_->tower) {
    TRY(row_encoder_, make_row_encoder(*model_->tower, backend_));
  }
  adapters_.resize(static_cast<std::size_t>(options_.max_adapters));

  // Allocates the maximum size, because recordings keep the addresses.
  const auto tokens = static_cast<std::size_t>(options_.max_tokens);
  const auto sequences = static_cast<std::size_t>(options_.max_sequences);
  inputs_.slots.resize(layout_.groups.size());
  lay_out_inputs(tokens, sequences);
  TRY_VOID(inputs_memory_.fit(*backend_.device, *backend_.stream));
  row_memory_.add<std::int32_t>(static_cast<std::size_t>(rows) + 1);
  if (reader_) {
    row_memory_.add<std::int32_t>(static_cast<std::size_t>(rows));
    row_memory_.add<std::int32_t>(adapters_.size() + 1);
  }
  TRY_VOID(row_memory_.fit(*backend_.device, *backend_.stream));
  const ModelSpec& spec = model_->spec;
  int widest = pools() ? 0 : spec.vocab;
  for (std::size_t head = 0; head < spec.heads(); ++head) widest = std::max(widest, pooled_size(spec, head));
  const auto columns = static_cast<std::size_t>(widest);
  TRY(logits_, backend_.device->allocate(static_cast<std::size_t>(rows) * columns * 4));
  if (pools()) pooled_.reserve(sequences * columns);
  groups_.reserve(layout_.groups.size());
  query_starts_.reserve(sequences + 1);
  lengths_.reserve(sequences);
  sequences_.reserve(sequences);
  owners_.reserve(sequences);
  return {};
}

// The KV of padding goes to a separate block that no query reads.
Result<> LocalExecutor::allocate_cache(std::int64_t blocks, std::int64_t state_slots, std::int64_t sources) {
  blocks_ = blocks;
  if (options_.expert_balancing.enabled) {
    TRY(balancer_, ExpertBalancer::create(options_.expert_balancing, *model_, *options_.ranks->tensor));
  }
  if (source_encoder_) TRY_VOID(source_encoder_->allocate_places(sources));
  TRY(cache_, KvMemory::allocate(layout_, backend_, blocks + (recordings_.sizes().empty() ? 0 : 1),
                                 state_slots, options_.shared_cache));
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
  TRY_VOID(allocate_cache(blocks, options_.max_sequences));
  const auto available = [&] { return static_cast<std::int64_t>(backend_.device->available_bytes()); };
  TRY_VOID(rehearse_step(texts));
  TRY_VOID(rehearse_step(decoding));
  const std::int64_t before = available();
  if (!recordings_.sizes().empty()) TRY_VOID(rehearse_step(decoding));  // recorded by this run
  recording_bytes_ = std::max<std::int64_t>(before - available(), 0);
  recordings_.forget();
  cache_ = {};
  blocks_ = 0;
  log_info("after the largest steps {} MiB of {} MiB are left; a recording takes {} KiB", available() >> 20,
           backend_.device->memory_bytes() >> 20, *recording_bytes_ >> 10);
  return {};
}

// Uses every sampler feature except penalties, whose memory grows with the text.
Result<> LocalExecutor::rehearse_step(std::span<const int> texts) {
  const int vocab = static_cast<int>(model_->spec.vocab);
  const Batch batch = new_texts(texts, static_cast<int>(plans_.size()), layout_.block_size, vocab);
  TRY_VOID(forward(batch));
  if (pools()) {
    TRY_VOID(pool(batch.query_starts, std::vector<std::uint8_t>(texts.size())));
    return {};
  }
  SamplingParams params;
  params.top_p = 0.9;
  params.top_k = std::min(vocab, 50);
  params.logprobs = std::min(vocab, 20);
  const SequenceSampling sampling(params, {}, {}, 0, vocab);
  const std::vector<std::int32_t> mask(static_cast<std::size_t>((vocab + 31) / 32), -1);
  std::vector<std::int32_t> last;
  for (std::size_t s = 0; s < texts.size(); ++s) last.push_back(batch.query_starts[s + 1] - 1);
  const std::vector<SampleRow> rows(last.size(), {.sequence = &sampling, .output = {}, .mask = mask});
  TRY_VOID(sample(last, rows));
  TRY_VOID(collect());
  backend_.stream->synchronize();
  results_.clear();
  return {};
}

Result<BlockFormat> LocalExecutor::block_format() const {
  if (!cache_.exchanges())
    return field_failure("kv_transfer_config", ErrorCode::unsupported,
                         "KV blocks do not leave the device {} yet", backend_.name);
  if (layout_.state_floats > 0 && !backend_.device->shares_host_memory())
    return field_failure("kv_transfer_config", ErrorCode::unsupported,
                         "states of recurrent layers do not leave the device {} yet", backend_.name);
  BlockFormat format{.fingerprint = options_.fingerprint,
                     .dtype = std::string(layout_.groups.empty() ? "" : name(layout_.groups[0].kv.dtype)),
                     .block_size = layout_.block_size};
  cache_.pieces().describe(format);
  return format;
}

Result<> LocalExecutor::release_cache() {
  if (!device().shares_host_memory()) return Executor::release_cache();
  cache_.release();
  return {};
}

std::int64_t LocalExecutor::later_bytes() const {
  // Estimate without rehearse(), and for what it does not run: code for other numbers of rows, masks,
  // histories.
  constexpr std::int64_t kRecordingsAndCode = std::int64_t{512} << 20, kRest = std::int64_t{128} << 20;
  const std::int64_t adapters = reader_ ? options_.max_adapters * reader_->bytes_max() : 0;
  const std::int64_t images = row_encoder_
                                  ? image_tokens_max(model_->max_model_len) * row_encoder_->row_bytes() +
                                        row_encoder_->later_bytes(model_->max_model_len)
                                  : 0;
  const std::int64_t own =
      recording_bytes_ ? kRest + std::ssize(recordings_.sizes()) * *recording_bytes_ : kRecordingsAndCode;
  return adapters + images + (backend_.stream->asynchronous() ? own : 0);
}

void LocalExecutor::lay_out_inputs(std::size_t tokens, std::size_t pending) {
  inputs_memory_.clear();
  inputs_.ids = inputs_memory_.add<std::int32_t>(tokens);
  inputs_.positions = inputs_memory_.add<std::int32_t>(tokens);
  inputs_.types = inputs_memory_.add<std::int32_t>(model_->spec.token_types > 0 ? tokens : 0);
  inputs_.axes = inputs_memory_.add<std::int32_t>(model_->spec.has_axes() ? kAxes * tokens : 0);
  for (auto& slots : inputs_.slots) slots = inputs_memory_.add<std::int64_t>(tokens);
  if (layout_.state_floats > 0) {  // every sequence has at least one token
    inputs_.state_slots = inputs_memory_.add<std::int32_t>(tokens);
    inputs_.state_starts = inputs_memory_.add<std::int32_t>(tokens + 1);
    inputs_.state_copies = inputs_memory_.add<std::int32_t>(tokens);
  }
  inputs_.pending_tokens = inputs_memory_.add<std::int32_t>(pending);
  inputs_.pending_rows = inputs_memory_.add<std::int32_t>(pending);
  inputs_.image_rows = inputs_memory_.add<std::int32_t>(row_encoder_ ? tokens : 0);
  if (!reader_) return;
  inputs_.adapter_tokens = inputs_memory_.add<std::int32_t>(tokens);
  inputs_.adapter_starts = inputs_memory_.add<std::int32_t>(adapters_.size() + 1);
}

Result<> LocalExecutor::forward(const Batch& batch) {
  if (balancer_) balancer_->before_step();
  // Recordings support neither adapters nor images.
  const bool adapted = std::ranges::any_of(batch.adapters, [](int place) { return place >= 0; });
  const int size = adapted || !batch.images.empty() ? 0 : recordings_.size_of(batch);  // 0: no recording
  CHECK(batch.pending.empty() || options_.asynchronous, "this executor is not asynchronous");
  lay_out_inputs(static_cast<std::size_t>(size > 0 ? size : batch.tokens()), batch.pending.size());
  TRY_VOID(inputs_memory_.fit(*backend_.device, *backend_.stream));
  pack(batch);
  const std::size_t pending = resolve(batch);
  sequence_adapters_.clear();
  if (adapted) {
    sequence_adapters_ = batch.adapters;
    sort_tokens(batch);
  }
  place_images(batch);
  plan(batch, size);
  TRY_VOID(plan_wholes(batch));

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
  StateBatch states;
  if (layout_.state_floats > 0) {
    const auto sequences = std::ssize(lengths_);
    states = {.memory = cache_.states(),
              .slots = device(inputs_.state_slots).rows(0, sequences),
              .starts = device(inputs_.state_starts).rows(0, sequences + 1),
              .copies = device(inputs_.state_copies)};
  }
  StepAdapters adapters{.adapters = adapted_tokens_.adapters, .host_starts = adapted_tokens_.starts};
  if (adapted) {
    adapters.starts = device(inputs_.adapter_starts).rows(0, std::ssize(adapted_tokens_.starts));
    adapters.tokens = device(inputs_.adapter_tokens).rows(0, std::ssize(adapted_tokens_.numbers));
  }
  // Text tokens have the same position on all axes.
  View axes;
  if (inputs_.axes.count > 0)
    axes = in_rows(device(inputs_.axes), kAxes).rows(0, batch.images.empty() ? 1 : kAxes);
  const auto run = [&] {
    decoder_->forward({.ids = device(inputs_.ids),
                       .positions = device(inputs_.positions),
                       .axes = axes,
                       .token_types = device(inputs_.types),
                       .groups = groups_,
                       .states = states,
                       .adapters = adapted ? &adapters : nullptr,
                       .images = step_images_,
                       .wholes = wholes_,
                       .cross = source_encoder_ ? source_encoder_->batch() : CrossBatch{}},
                      cache_.layers());
  };
  copy_states(batch.restored_states);
  const View between = decoder_->handed_on(batch.tokens());
  if (options_.ranks != nullptr && options_.ranks->from_stage_before)
    hand_on(*options_.ranks->from_stage_before, between);
  TRY_VOID(ranks_status());
  size > 0 ? recordings_.run(stream, size, run) : run();
  copy_states(batch.saved_states);
  steps_begun_ = stream.mark();
  if (options_.ranks != nullptr && options_.ranks->to_stage_behind)
    hand_on(*options_.ranks->to_stage_behind, between);
  return ranks_status();
}

Result<> LocalExecutor::ranks_status() const {
  return options_.ranks != nullptr ? options_.ranks->status() : Result<>();
}

// Sends rows to the next stage. rows: f32 [n, dim], in host memory.
void LocalExecutor::hand_on(ProcessGroup& stages, const View& rows) {
  stages.broadcast(
      std::span(reinterpret_cast<std::byte*>(rows.as<float>()), static_cast<std::size_t>(rows.bytes())));
}

void LocalExecutor::pack(const Batch& batch) {
  put<std::int32_t>(inputs_memory_.host(inputs_.ids), batch.ids, 0);
  put<std::int32_t>(inputs_memory_.host(inputs_.positions), batch.positions, 0);
  if (model_->spec.token_types > 0) put<std::int32_t>(inputs_memory_.host(inputs_.types), batch.types, 0);
  const std::size_t each = inputs_.axes.count / kAxes;
  for (std::size_t axis = 0; each > 0 && axis < kAxes; ++axis) {
    const std::vector<std::int32_t>& own = batch.axes[axis];
    put<std::int32_t>(inputs_memory_.host(inputs_.axes).subspan(axis * each, each),
                      own.empty() ? batch.positions : own, 0);
  }
  for (std::size_t g = 0; g < plans_.size(); ++g) {
    const std::vector<std::int64_t>& slots = batch.groups[g].slots;
    put<std::int64_t>(inputs_memory_.host(inputs_.slots[g]), slots, blocks_ * layout_.block_size);
    if (!slots.empty()) cache_.used(std::ranges::max(slots) / layout_.block_size);
  }
}

// Fills in tokens that were still being sampled when the step was planned. Returns the number that are still
// being sampled; these are listed in the inputs.
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

void LocalExecutor::sort_by_adapter(std::span<const std::int32_t> places, ByAdapter& sorted) const {
  sorted.adapters.clear();
  sorted.starts.assign(1, 0);
  sorted.numbers.clear();
  for (std::size_t place = 0; place < adapters_.size(); ++place) {
    for (std::size_t i = 0; i < places.size(); ++i)
      if (std::cmp_equal(places[i], place)) sorted.numbers.push_back(static_cast<std::int32_t>(i));
    if (std::cmp_equal(sorted.numbers.size(), sorted.starts.back())) continue;
    sorted.adapters.push_back(&adapters_[place]);
    sorted.starts.push_back(static_cast<std::int32_t>(sorted.numbers.size()));
  }
}

void LocalExecutor::sort_tokens(const Batch& batch) {
  item_adapters_.clear();
  for (std::size_t s = 0; s < batch.adapters.size(); ++s)
    item_adapters_.resize(static_cast<std::size_t>(batch.query_starts[s + 1]), batch.adapters[s]);
  sort_by_adapter(item_adapters_, adapted_tokens_);
  std::ranges::copy(adapted_tokens_.numbers, inputs_memory_.host(inputs_.adapter_tokens).begin());
  std::ranges::copy(adapted_tokens_.starts, inputs_memory_.host(inputs_.adapter_starts).begin());
}

void LocalExecutor::sort_rows(std::span<const std::int32_t> tokens) {
  item_adapters_.clear();
  if (!sequence_adapters_.empty())
    for (const std::int32_t token : tokens) item_adapters_.push_back(sequence_adapters_[sequence_of(token)]);
  sort_by_adapter(item_adapters_, adapted_rows_);
}

void LocalExecutor::place_images(const Batch& batch) {
  step_images_.clear();
  std::size_t used = 0;
  for (const Batch::Image& image : batch.images) {
    const auto rows =
        inputs_memory_.host(inputs_.image_rows).subspan(used, static_cast<std::size_t>(image.count));
    std::iota(rows.begin(), rows.end(), 0);
    step_images_.push_back(
        {.token = image.token,
         .x = row_encoder_->rows_of(images_[static_cast<std::size_t>(image.place)])
                  .rows(image.row, image.count),
         .rows =
             inputs_memory_.device(inputs_.image_rows).rows(static_cast<std::int64_t>(used), image.count)});
    used += rows.size();
  }
}

void LocalExecutor::copy_states(std::span<const Batch::StateCopy> copies) {
  if (layout_.state_floats == 0) return;  // the state layers belong to another stage
  for (const Batch::StateCopy& copy : copies)
    backend_.device->copy(*backend_.stream, cache_.states().rows(copy.to, 1),
                          cache_.states().rows(copy.from, 1));
}

// Encodes a sound or a prompt at once.
Result<> LocalExecutor::begin_media(int place, const MediaPart& part) {
  if (source_encoder_) {
    source_encoder_->encode(place, part);
    return {};
  }
  begun_image_ = static_cast<std::size_t>(place);
  return row_encoder_->begin(part);
}

bool LocalExecutor::advance_media(int rows) {
  if (source_encoder_) return true;
  std::optional<Buffer> encoded = row_encoder_->advance(rows);
  if (!encoded) return false;
  images_.resize(std::max(images_.size(), begun_image_ + 1));
  images_[begun_image_] = *std::move(encoded);
  return true;
}

// A step in flight may still read it.
void LocalExecutor::drop_media(int place) {
  if (source_encoder_) return;
  backend_.stream->synchronize();
  images_[static_cast<std::size_t>(place)] = {};
}

Result<> LocalExecutor::put_adapter(int place, std::span<const AdapterFile::Change> changes) {
  Adapter& adapter = adapters_[static_cast<std::size_t>(place)];
  adapter.resize(reader_->linears());
  for (const AdapterFile::Change& change : changes) {
    TRY(adapter[change.linear], reader_->prepare(change, backend_));
  }
  return {};
}

// A step in flight may still read it.
void LocalExecutor::drop_adapter(int place) {
  backend_.stream->synchronize();
  adapters_[static_cast<std::size_t>(place)].clear();
}

// Padding sequences have no query and nothing cached.
void LocalExecutor::plan(const Batch& batch, int size) {
  sequences_.assign(batch.sequences.begin(), batch.sequences.end());
  query_starts_.assign(batch.query_starts.begin(), batch.query_starts.end());
  lengths_.assign(batch.lengths.begin(), batch.lengths.end());
  if (size > 0) {
    query_starts_.resize(static_cast<std::size_t>(size) + 1, query_starts_.back());
    lengths_.resize(static_cast<std::size_t>(size), 0);
  }
  if (layout_.state_floats > 0) {
    put<std::int32_t>(inputs_memory_.host(inputs_.state_slots), batch.state_slots, 0);
    put<std::int32_t>(inputs_memory_.host(inputs_.state_starts), query_starts_, query_starts_.back());
    put<std::int32_t>(inputs_memory_.host(inputs_.state_copies), batch.state_copies, -1);
  }
  if (source_encoder_) source_encoder_->plan(query_starts_, batch.sources);
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

// Each image of the step is a separate sequence, which ends with the image.
Result<> LocalExecutor::plan_wholes(const Batch& batch) {
  wholes_.clear();
  if (!model_->spec.whole_images) return {};
  for (const Batch::Image& image : batch.images) {
    if (wholes_.size() == whole_plans_.size()) TRY_VOID(add_whole_plans());
    const std::array<std::int32_t, 2> starts{0, image.count};
    const std::array<std::int32_t, 1> length{
        batch.positions[static_cast<std::size_t>(image.token + image.count) - 1] + 1};
    WholeSpan& span =
        wholes_.emplace_back(WholeSpan{.token = image.token, .count = image.count, .plans = {}});
    for (std::size_t g = 0; g < plans_.size(); ++g) {
      const Batch::Group& group = batch.groups[g];
      AttentionPlan& plan = *whole_plans_[wholes_.size() - 1][g];
      const auto stride = static_cast<std::size_t>(group.table_stride);
      backend_.ops.plan_attention(
          *backend_.stream,
          {.query_starts = starts,
           .lengths = length,
           .block_tables =
               std::span(group.tables).subspan(static_cast<std::size_t>(image.sequence) * stride, stride),
           .table_stride = group.table_stride,
           .recorded = false},
          plan);
      span.plans.push_back(&plan);
    }
  }
  return {};
}

Result<> LocalExecutor::add_whole_plans() {
  std::vector<std::unique_ptr<AttentionPlan>> plans;
  for (const LayerGroup& group : layout_.groups) {
    AttentionLimits limits = attention_limits(*model_, group, options_.max_tokens, 1);
    limits.causal = false;
    TRY(plans.emplace_back(), backend_.ops.make_attention_plan(*backend_.device, limits));
  }
  whole_plans_.push_back(std::move(plans));
  return {};
}

// The host waits if there are more rows than one pass computes. Only log-probabilities of prompts need that
// many.
Result<> LocalExecutor::sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  results_.clear();
  note_owners(tokens, rows);
  const auto chunk = static_cast<std::size_t>(logit_rows(options_));
  for (std::size_t begin = 0; begin < rows.size(); begin += chunk) {
    take_chunk();
    const std::size_t count = std::min(chunk, rows.size() - begin);
    TRY_VOID(sample_chunk(tokens.subspan(begin, count), rows.subspan(begin, count)));
  }
  return {};
}

void LocalExecutor::note_owners(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  owners_.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].forced >= 0) continue;
    owners_.emplace_back(sequences_[sequence_of(tokens[r])], static_cast<std::int32_t>(r));
  }
  std::ranges::sort(owners_);
}

// Index of the token's sequence in the step.
std::size_t LocalExecutor::sequence_of(std::int32_t token) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(query_starts_, token) - query_starts_.begin()) - 1;
}

// Uses the same chunks as rank 0's sampling.
Result<> LocalExecutor::give_logits(std::span<const std::int32_t> tokens) {
  const auto chunk = static_cast<std::size_t>(logit_rows(options_));
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk)
    TRY_VOID(chunk_logits(tokens.subspan(begin, std::min(chunk, tokens.size() - begin))));
  return {};
}

Result<View> LocalExecutor::chunk_logits(std::span<const std::int32_t> tokens) {
  const View logits = logits_.view(DType::f32, {std::ssize(tokens), model_->spec.vocab});
  sort_rows(tokens);
  const ByAdapter& sorted = adapted_rows_;
  TRY(const UploadedRows uploaded, upload_rows(tokens, sorted.numbers, sorted.starts));
  const StepAdapters adapters{.adapters = sorted.adapters,
                              .host_starts = sorted.starts,
                              .starts = uploaded.adapter_starts,
                              .tokens = uploaded.by_adapter};
  decoder_->logits(uploaded.rows, logits, sorted.adapters.empty() ? nullptr : &adapters);
  TRY_VOID(ranks_status());
  return logits;
}

Result<> LocalExecutor::read_hidden(const LocalExecutor& from, std::span<const std::int32_t> rows) {
  TRY(const UploadedRows uploaded, upload_rows(rows));
  decoder_->read_hidden(*from.decoder_, uploaded.rows);
  return {};
}

// Valid until the next call.
Result<LocalExecutor::UploadedRows> LocalExecutor::upload_rows(std::span<const std::int32_t> rows,
                                                               std::span<const std::int32_t> by_adapter,
                                                               std::span<const std::int32_t> adapter_starts) {
  row_memory_.clear();
  const auto row_part = row_memory_.add<std::int32_t>(rows.size());
  const auto adapter_part = row_memory_.add<std::int32_t>(by_adapter.size());
  const auto start_part = row_memory_.add<std::int32_t>(adapter_starts.size());
  TRY_VOID(row_memory_.fit(*backend_.device, *backend_.stream));
  std::ranges::copy(rows, row_memory_.host(row_part).begin());
  std::ranges::copy(by_adapter, row_memory_.host(adapter_part).begin());
  std::ranges::copy(adapter_starts, row_memory_.host(start_part).begin());
  row_memory_.upload(*backend_.device, *backend_.stream);
  return UploadedRows{.rows = row_memory_.device(row_part),
                      .by_adapter = row_memory_.device(adapter_part),
                      .adapter_starts = row_memory_.device(start_part)};
}

Result<> LocalExecutor::sample_chunk(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) {
  TRY(const View logits, chunk_logits(tokens));
  TRY_VOID(sampler_.launch(logits, rows));
  sampling_ = true;
  return {};
}

void LocalExecutor::take_chunk() {
  if (!std::exchange(sampling_, false)) return;
  for (SampledToken& token : sampler_.collect()) results_.push_back(std::move(token));
}

Result<std::span<SampledToken>> LocalExecutor::collect() {
  take_chunk();
  return std::span<SampledToken>(results_);
}

Result<std::span<const float>> LocalExecutor::pool(std::span<const std::int32_t> starts,
                                                   std::span<const std::uint8_t> heads) {
  const auto chunk = static_cast<std::size_t>(logit_rows(options_));
  const auto size_of = [&](std::uint8_t head) {
    return static_cast<std::size_t>(pooled_size(model_->spec, head));
  };
  std::size_t numbers = 0, done = 0;
  for (const std::uint8_t head : heads) numbers += size_of(head);
  pooled_.resize(numbers);
  decoder_->norm_rows();
  for (std::size_t begin = 0, count = 0; begin < heads.size(); begin += count) {
    const std::uint8_t head = heads[begin];
    const auto rest = heads.subspan(begin, std::min(chunk, heads.size() - begin));
    count = static_cast<std::size_t>(
        std::ranges::find_if(rest, [&](std::uint8_t other) { return other != head; }) - rest.begin());
    TRY(const UploadedRows uploaded, upload_rows(starts.subspan(begin, count + 1)));
    const View out = logits_.view(
        DType::f32, {static_cast<std::int64_t>(count), static_cast<std::int64_t>(size_of(head))});
    decoder_->pool(uploaded.rows, head, out);
    backend_.device->download(*backend_.stream, pooled_.data() + done, out);
    backend_.stream->synchronize();
    done += count * size_of(head);
  }
  return std::span<const float>(pooled_);
}

}  // namespace octavo
