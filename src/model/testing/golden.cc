#include "model/testing/golden.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>

#include "tensor/mapped_file.h"
#include "weights/safetensors.h"
#include "weights/testing/tensor_values.h"

namespace octavo::golden {
namespace {

template <class T>
Buffer uploaded(Backend& backend, std::span<const T> items) {
  Buffer copy = backend.device->allocate(items.size_bytes()).value();
  backend.device->upload(*backend.stream, copy.view(dtype_of<T>, {std::ssize(items)}), items.data());
  backend.stream->synchronize();
  return copy;
}
template <class T>
Buffer uploaded(Backend& backend, std::span<T> items) {
  return uploaded(backend, std::span<const T>(items));
}

class Sequence {
 public:
  Sequence(const Model& model, const CacheLayout& layout, Backend& backend, std::int64_t length,
           int chunk_max)
      : layout_(layout),
        backend_(backend),
        blocks_each_((length + layout.block_size - 1) / layout.block_size) {
    const std::int64_t groups = std::ssize(layout.groups);
    const std::int64_t blocks = groups * blocks_each_;
    const std::vector<std::uint8_t> nan(static_cast<std::size_t>(blocks * layout.block_bytes(backend.ops)),
                                        0xff);
    cache_ = backend.device->allocate(nan.size()).value();
    backend.device->upload(*backend.stream, cache_.view(DType::u8, {std::ssize(nan)}), nan.data());
    backend.stream->synchronize();
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
      layers_.push_back(
          layout.layer(backend.ops, static_cast<std::byte*>(cache_.data()), blocks, static_cast<int>(i)));
    }
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t i = 0; i < blocks_each_; ++i) {
        tables_.push_back(static_cast<std::int32_t>((blocks - 1 - i * groups - group)));
      }
      const AttentionLimits limits =
          attention_limits(model, layout.groups[static_cast<std::size_t>(group)], chunk_max, 1);
      plans_.push_back(backend.ops.make_attention_plan(*backend.device, limits).value());
    }
    if (layout.state_floats > 0) {  // The memory starts as NaN. The sequence uses the second of two slots.
      const std::vector<std::uint8_t> states(static_cast<std::size_t>(2 * layout.state_bytes()), 0xff);
      state_memory_ = backend.device->allocate(states.size()).value();
      backend.device->upload(*backend.stream, state_memory_.view(DType::u8, {std::ssize(states)}),
                             states.data());
      backend.stream->synchronize();
    }
    slots_.resize(layout.groups.size());
    device_slots_.resize(layout.groups.size());
    batches_.resize(layout.groups.size());
  }

  std::span<const KvLayer> layers() const { return layers_; }

  std::span<const GroupBatch> batches(std::int32_t begin, std::int32_t end) {
    const std::int64_t size = layout_.block_size;
    for (std::size_t g = 0; g < batches_.size(); ++g) {
      const std::span table = std::span(tables_).subspan(g * static_cast<std::size_t>(blocks_each_),
                                                         static_cast<std::size_t>(blocks_each_));
      const int window = layout_.groups[g].window;
      for (std::int64_t block = 0; window > 0 && (block + 1) * size <= begin - window + 1; ++block) {
        table[static_cast<std::size_t>(block)] = -1;
      }
      slots_[g].clear();
      for (std::int64_t t = begin; t < end; ++t) {
        slots_[g].push_back(table[static_cast<std::size_t>(t / size)] * size + t % size);
      }
      const std::int32_t starts[] = {0, end - begin};
      backend_.ops.plan_attention(
          *backend_.stream,
          {.query_starts = starts, .lengths = {&end, 1}, .block_tables = table, .table_stride = blocks_each_},
          *plans_[g]);
      device_slots_[g] = uploaded(backend_, std::span(slots_[g]));
      batches_[g] = {plans_[g].get(), device_slots_[g].view(DType::i64, {std::ssize(slots_[g])})};
    }
    return batches_;
  }

  StateBatch states(std::int32_t tokens) {
    if (layout_.state_floats == 0) return {};
    const std::int32_t numbers[] = {1, 0, tokens};  // slot, then starts
    state_numbers_ = uploaded(backend_, std::span<const std::int32_t>(numbers));
    const View all = state_numbers_.view(DType::i32, {3});
    return {.memory = state_memory_.view(DType::f32, {2, layout_.state_floats}),
            .slots = all.rows(0, 1),
            .starts = all.rows(1, 2)};
  }

 private:
  const CacheLayout& layout_;
  Backend& backend_;
  std::int64_t blocks_each_;
  Buffer cache_, state_memory_, state_numbers_;
  std::vector<KvLayer> layers_;
  std::vector<std::int32_t> tables_;  // [groups, blocks_each]
  std::vector<std::unique_ptr<AttentionPlan>> plans_;
  std::vector<std::vector<std::int64_t>> slots_;
  std::vector<Buffer> device_slots_;
  std::vector<GroupBatch> batches_;
};

const RankGroups kAlone;

// Runs a network over one text, chunk by chunk.
class Reader {
 public:
  static Result<std::unique_ptr<Reader>> make(const Model& model, Backend& backend, std::int64_t length,
                                              int chunk_max, const CacheOptions& options,
                                              DecoderLimits limits = {}, const RankGroups& ranks = kAlone) {
    std::unique_ptr<Reader> reader(new Reader(model, backend, options, ranks));
    limits.max_tokens = limits.max_logit_rows = chunk_max;
    TRY(Decoder decoder, Decoder::make(model, reader->layout_, backend, limits, ranks.tensor.get()));
    reader->decoder_.emplace(std::move(decoder));
    reader->sequence_.emplace(model, reader->layout_, backend, length, chunk_max);
    TRY(reader->logits_,
        backend.device->allocate(static_cast<std::size_t>(chunk_max) *
                                 static_cast<std::size_t>(model.spec.vocab) * sizeof(float)));
    return reader;
  }

  Decoder& decoder() { return *decoder_; }

  // Runs `ids`, whose first token has position `begin`.
  void forward(std::span<const std::int32_t> ids, std::int32_t begin, const Adapter* adapter = nullptr) {
    adapter_ = adapter;
    const auto count = static_cast<std::int32_t>(ids.size());
    std::vector<std::int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), begin);
    rows_.resize(ids.size());
    std::iota(rows_.begin(), rows_.end(), 0);
    const Buffer device_ids = uploaded(backend_, ids);
    const Buffer device_positions = uploaded(backend_, std::span(positions));
    const Buffer device_rows = uploaded(backend_, std::span(rows_));
    const std::vector<std::int32_t> starts{0, count};
    const Buffer device_starts = uploaded(backend_, std::span(starts));
    const StepAdapters adapters = step_adapters(starts, device_starts, device_rows);
    const View between = decoder_->handed_on(count);
    const std::span<std::byte> rows_between(reinterpret_cast<std::byte*>(between.as<float>()),
                                            static_cast<std::size_t>(between.bytes()));
    if (ranks_.from_stage_before) ranks_.from_stage_before->broadcast(rows_between);
    decoder_->forward({.ids = device_ids.view(DType::i32, {count}),
                       .positions = device_positions.view(DType::i32, {count}),
                       .groups = sequence_->batches(begin, begin + count),
                       .states = sequence_->states(count),
                       .adapters = adapter != nullptr ? &adapters : nullptr},
                      sequence_->layers());
    backend_.stream->synchronize();
    if (ranks_.to_stage_behind) ranks_.to_stage_behind->broadcast(rows_between);
  }

  // Sets the rows for a drafter: token i of the next forward() reads row rows[i] of the last output of
  // `from`.
  void read_hidden(Reader& from, std::span<const std::int32_t> rows) {
    const Buffer device_rows = uploaded(backend_, rows);
    decoder_->read_hidden(from.decoder(), device_rows.view(DType::i32, {std::ssize(rows)}));
    backend_.stream->synchronize();
  }

  // Appends the logits of every token of the last forward(). Ranks of stages before the last append nothing.
  void append_logits(std::vector<float>& to) {
    if (ranks_.to_stage_behind) return;
    const auto count = std::ssize(rows_);
    const Buffer device_rows = uploaded(backend_, std::span(rows_));
    const std::vector<std::int32_t> starts{0, static_cast<std::int32_t>(count)};
    const Buffer device_starts = uploaded(backend_, std::span(starts));
    const StepAdapters adapters = step_adapters(starts, device_starts, device_rows);
    const View out = logits_.view(DType::f32, {count, model_.spec.vocab});
    decoder_->logits(device_rows.view(DType::i32, {count}), out, adapter_ != nullptr ? &adapters : nullptr);
    const std::size_t before = to.size();
    to.resize(before + static_cast<std::size_t>(out.elements()));
    backend_.device->download(*backend_.stream, to.data() + before, out);
    backend_.stream->synchronize();
  }

 private:
  Reader(const Model& model, Backend& backend, const CacheOptions& options, const RankGroups& ranks)
      : model_(model), backend_(backend), ranks_(ranks), layout_(cache_layout(model.spec, options)) {}

  // Returns adapters for all rows. The arguments must outlive the result.
  StepAdapters step_adapters(std::span<const std::int32_t> starts, const Buffer& device_starts,
                             const Buffer& device_rows) const {
    return {.adapters = {&adapter_, 1},
            .starts = device_starts.view(DType::i32, {2}),
            .tokens = device_rows.view(DType::i32, {starts.back()})};
  }

  const Model& model_;
  Backend& backend_;
  const RankGroups& ranks_;
  CacheLayout layout_;
  std::optional<Decoder> decoder_;
  std::optional<Sequence> sequence_;
  Buffer logits_;
  std::vector<std::int32_t> rows_;    // row indices 0, 1 ..
  const Adapter* adapter_ = nullptr;  // used by the last forward()
};

}  // namespace

std::vector<std::string> names(const std::string& root) {
  std::vector<std::string> found;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(root, ec)) {
    if (entry.is_directory()) found.push_back(entry.path().filename());
  }
  std::ranges::sort(found);
  return found;
}

AdapterCase adapter_case(const std::string& name) {
  const std::string folder = "tests/data/adapters/" + name;
  if (std::filesystem::exists(folder + "/model.gguf"))
    return {folder + "/model.gguf", folder + "/adapter.gguf"};
  return {std::string(kModels) + "/" + name, folder};
}

Golden read(const std::string& name, const std::string& root) {
  const std::string directory = root + "/" + name;
  const auto file = MappedFile::open(directory + "/golden.safetensors");
  CHECK(file.has_value(), "{}", name);
  const auto tensors = parse_safetensors(file->bytes(), name);
  CHECK(tensors.has_value(), "{}", tensors.error().message);
  Golden golden{name,
                directory,
                values_of<std::int32_t>(*tensors, "ids"),
                values_of<float>(*tensors, "logits"),
                values_of<float>(*tensors, "bf16_kl"),
                values_of<float>(*tensors, "bf16_logits"),
                {},
                values_of<float>(*tensors, "next_logits")};
  const auto length = values_of<std::int32_t>(*tensors, "max_model_len");
  if (!length.empty()) golden.max_model_len = length[0];
  return golden;
}

Result<std::vector<float>> run(const Model& model, Backend& backend, std::span<const std::int32_t> ids,
                               const std::vector<int>& chunks, const CacheOptions& options,
                               const TestAdapter& adapter, const RankGroups& ranks,
                               const std::function<void()>& before_chunk) {
  const auto length = static_cast<std::int32_t>(ids.size());
  const int chunk_max = std::min(length, *std::ranges::max_element(chunks));
  TRY(const auto reader, Reader::make(model, backend, length, chunk_max, options,
                                      {.max_adapter_rank = adapter.max_rank}, ranks));
  std::vector<float> logits;
  std::size_t next = 0;
  for (std::int32_t begin = 0; begin < length;) {
    const std::int32_t count = std::min(length - begin, chunks[std::min(next++, chunks.size() - 1)]);
    if (before_chunk) before_chunk();
    reader->forward(ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)), begin,
                    adapter.adapter);
    reader->append_logits(logits);
    begin += count;
  }
  return logits;
}

Result<DrafterLogits> run_drafter(const Model& model, const Drafter& drafter, Backend& backend,
                                  std::span<const std::int32_t> ids, int chunk, const CacheOptions& options) {
  const auto length = static_cast<std::int32_t>(ids.size());
  TRY(const auto reader, Reader::make(model, backend, length, chunk, options,
                                      {.kept_layers = drafter.model->spec.inputs.hidden->layers}));
  TRY(const auto head, Reader::make(*drafter.model, backend, length, chunk, options));
  DrafterLogits out;
  std::vector<std::int32_t> rows(static_cast<std::size_t>(chunk));
  std::iota(rows.begin(), rows.end(), 0);
  std::int32_t last = 0;  // number of tokens in the last chunk
  for (std::int32_t begin = 0; begin < length; begin += chunk) {
    const auto piece = ids.subspan(static_cast<std::size_t>(begin));
    reader->forward(piece.first(std::min(piece.size(), rows.size())), begin);
    // number of next tokens whose logits are in the golden data
    const std::size_t known = std::min(piece.size() - 1, rows.size());
    if (known == 0) break;
    head->read_hidden(*reader, std::span(rows).first(known));
    head->forward(piece.subspan(1, known), begin);
    head->append_logits(out.logits);
    last = static_cast<std::int32_t>(known);
  }
  const std::span<const float> behind =
      std::span(out.logits).last(static_cast<std::size_t>(drafter.model->spec.vocab));
  auto draft_token = static_cast<std::int32_t>(std::ranges::max_element(behind) - behind.begin());
  if (!drafter.tokens.empty()) draft_token = drafter.tokens[static_cast<std::size_t>(draft_token)];
  head->read_hidden(*head, std::array{last - 1});
  head->forward({&draft_token, 1}, length - 1);
  head->append_logits(out.next);
  return out;
}

Result<std::vector<float>> run_position_heads(const Model& model, PositionHeads& heads, Backend& backend,
                                              std::span<const std::int32_t> ids, int chunk,
                                              const CacheOptions& options) {
  const auto length = static_cast<std::int32_t>(ids.size());
  const std::int32_t rows = length - heads.positions();
  const std::int64_t vocab = heads.model().spec.vocab;
  TRY(const auto reader, Reader::make(model, backend, length, chunk, options));
  TRY(const Buffer memory, backend.device->allocate(static_cast<std::size_t>(chunk * vocab) * sizeof(float)));
  std::vector<float> logits(static_cast<std::size_t>(heads.positions() * rows * vocab));
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(chunk));
  std::iota(numbers.begin(), numbers.end(), 0);
  const Buffer device_numbers = uploaded(backend, std::span(numbers));
  for (std::int32_t begin = 0; begin < rows; begin += chunk) {
    const auto piece = ids.subspan(static_cast<std::size_t>(begin));
    reader->forward(piece.first(std::min(piece.size(), numbers.size())), begin);
    const std::int32_t count = std::min(chunk, rows - begin);
    heads.begin(reader->decoder().residual(count), device_numbers.view(DType::i32, {count}));
    for (int position = 0; position < heads.positions(); ++position) {
      const Buffer behind = uploaded(
          backend, piece.subspan(static_cast<std::size_t>(position) + 1, static_cast<std::size_t>(count)));
      const View out = memory.view(DType::f32, {count, vocab});
      heads.logits(position, behind.view(DType::i32, {count}), out);
      backend.device->download(*backend.stream, logits.data() + (position * rows + begin) * vocab, out);
      backend.stream->synchronize();
    }
  }
  return logits;
}

float max_difference(std::span<const float> a, std::span<const float> b) {
  CHECK(a.size() == b.size());
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float d = std::abs(a[i] - b[i]);
    if (!(d <= most)) most = std::isnan(d) ? INFINITY : d;
  }
  return most;
}

double mean_kl(std::span<const float> p, std::span<const float> q, std::int64_t vocab) {
  const auto log_sum = [&](const float* x) {
    const float top = *std::max_element(x, x + vocab);
    double sum = 0;
    for (std::int64_t i = 0; i < vocab; ++i) sum += std::exp(double{x[i]} - top);
    return top + std::log(sum);
  };
  double kl = 0;
  const std::int64_t rows = std::ssize(p) / vocab;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* a = p.data() + row * vocab;
    const float* b = q.data() + row * vocab;
    const double shift_a = log_sum(a);
    const double shift_b = log_sum(b);
    for (std::int64_t i = 0; i < vocab; ++i) {
      kl += std::exp(a[i] - shift_a) * ((a[i] - shift_a) - (b[i] - shift_b));
    }
  }
  return kl / static_cast<double>(rows);
}

}  // namespace octavo::golden
