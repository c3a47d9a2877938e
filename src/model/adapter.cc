#include "model/adapter.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/thread_pool.h"
#include "model/adapter_config.h"
#include "model/network.h"
#include "tensor/mapped_file.h"
#include "weights/safetensors.h"

namespace octavo {
namespace {

constexpr std::string_view kFile = "adapter_model.safetensors";
constexpr std::string_view kRoot = "base_model.model.";  // what PEFT wraps the model in

Result<MappedFile> open_tensors(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kFile);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return failure(ErrorCode::not_found, "{} has no {} (pickled .bin files are not read)", directory, kFile);
  return MappedFile::open(path);
}

std::string text_of(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// What the name of a tensor ends with, behind its module.
struct Suffix {
  std::string_view text, other;  // other: of the matrix that belongs to it
  bool is_a;
  bool of_embedding;
};
constexpr Suffix kSuffixes[] = {{".lora_A.weight", ".lora_B.weight", true, false},
                                {".lora_B.weight", ".lora_A.weight", false, false},
                                {".lora_embedding_A", ".lora_embedding_B", true, true},
                                {".lora_embedding_B", ".lora_embedding_A", false, true}};
// PEFT writes the base model's embedding and output matrix beside an adapter of them; LoRA leaves them alone.
constexpr std::string_view kBaseSuffix = ".base_layer.weight";

// Numbers of a [rows, cols] tensor, times `scale`, into rows `first + r` of `to` from column `column` on; or
// its transpose.
void copy_block(const StoredTensor& tensor, float scale, DType format, std::vector<std::byte>& to,
                std::int64_t stride, std::int64_t first, std::int64_t column, bool transposed) {
  const std::int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      put_number(
          to.data(), format,
          static_cast<std::size_t>((first + (transposed ? c : r)) * stride + column + (transposed ? r : c)),
          scale * number_at(tensor, r * cols + c));
}

}  // namespace

AdapterReader::AdapterReader(const ModelSpec& spec, DType format, int max_rank)
    : prefixes_(spec.names.prefixes), format_(format), max_rank_(max_rank), embed_scale_(spec.embed_scale) {
  linears_.push_back({.rows = spec.dim, .cols = spec.vocab, .parts = 1, .order = {}});
  linears_.push_back({.rows = spec.vocab, .cols = spec.dim, .parts = 1, .order = {}});
  modules_[spec.names.embedding] = {kEmbeddingIndex, 0, 0, spec.dim};
  modules_[spec.names.lm_head] = {kOutputIndex, 0, 0, spec.vocab};
  const std::string layers = prefixes_[0] + spec.names.layers;
  Network network = network_of(spec);
  for (const LinearParameter* linear : network.parameters().linears) {
    const MatrixParameter& w = linear->weight;
    linears_.push_back({w.rows, w.cols, std::ssize(w.parts), w.order});
    std::int64_t row = 0;
    for (std::size_t p = 0; p < w.parts.size(); ++p) {
      const Slot& slot = w.parts[p];
      constexpr std::size_t kSuffix = std::string_view(".weight").size();
      const std::int64_t rows = slot.shape[w.transposed ? 1 : 0];
      if (!slot.name.starts_with(layers)) continue;  // of a head
      modules_[slot.name.substr(prefixes_[0].size(), slot.name.size() - prefixes_[0].size() - kSuffix)] = {
          linear->index, static_cast<std::int64_t>(p), row, rows};
      row += rows;
    }
  }
}

// The output matrix has its name without a prefix.
Result<const AdapterReader::Module*> AdapterReader::find(std::string_view name) const {
  if (const auto found = modules_.find(name); found != modules_.end() && found->second.linear == kOutputIndex)
    return &found->second;
  for (const std::string& prefix : prefixes_)
    if (name.starts_with(prefix))
      if (const auto found = modules_.find(name.substr(prefix.size()));
          found != modules_.end() && found->second.linear != kOutputIndex)
        return &found->second;
  return failure(ErrorCode::unsupported,
                 "{}: {} is no linear layer of the base model that an adapter can change", kFile, name);
}

// Of another shape they belong to another vocabulary.
Result<> AdapterReader::check_base_matrix(const StoredTensor& tensor, std::string_view module) const {
  TRY(const Module* at, find(module));
  const Linear& linear = linears_[at->linear];
  const bool is_output = at->linear == kOutputIndex;
  if (!is_output && at->linear != kEmbeddingIndex)
    return failure(ErrorCode::unsupported, "{}: tensor {} is a matrix of the base model", kFile, tensor.name);
  const std::vector<std::int64_t> shape{is_output ? linear.rows : linear.cols,
                                        is_output ? linear.cols : linear.rows};
  if (tensor.shape != shape)
    return failure(ErrorCode::corrupt,
                   "{}: tensor {} is {}; the base model has {}, and an adapter cannot change it", kFile,
                   tensor.name, text_of(tensor.shape), text_of(shape));
  return {};
}

Result<AdapterFile> AdapterReader::read(const std::string& directory) const {
  TRY(const AdapterConfig config, load_adapter_config(directory));
  if (config.rank > max_rank_)
    return invalid("max_lora_rank", "the adapter's r is {}, the server takes at most {} (--max-lora-rank)",
                   config.rank, max_rank_);
  TRY(const MappedFile file, open_tensors(directory));
  TRY(const std::vector<StoredTensor> tensors, parse_safetensors(file.bytes(), kFile));
  ThreadPool pool(1);
  const auto find_tensor = [&](const std::string& name) {
    const auto found = std::ranges::lower_bound(tensors, name, {}, &StoredTensor::name);
    return found != tensors.end() && found->name == name ? &*found : nullptr;
  };

  AdapterFile adapter;
  std::vector<std::size_t> places(linears_.size(), SIZE_MAX);  // in adapter.changes
  for (const StoredTensor& tensor : tensors) {
    const std::string_view full = tensor.name;
    const auto module_of = [&](std::string_view suffix) {
      return full.substr(kRoot.size(), full.size() - kRoot.size() - suffix.size());
    };
    if (full.starts_with(kRoot) && full.ends_with(kBaseSuffix)) {
      TRY_VOID(check_base_matrix(tensor, module_of(kBaseSuffix)));
      continue;
    }
    const Suffix* suffix =
        std::ranges::find_if(kSuffixes, [&](const Suffix& one) { return full.ends_with(one.text); });
    if (suffix == std::end(kSuffixes) || !full.starts_with(kRoot))
      return failure(ErrorCode::unsupported, "{}: tensor {} is none of a LoRA of linear layers", kFile, full);
    const std::string_view module = module_of(suffix->text);
    TRY(const Module* at, find(module));
    const Linear& linear = linears_[at->linear];
    const bool of_embedding = at->linear == kEmbeddingIndex;
    if (of_embedding != suffix->of_embedding)
      return failure(ErrorCode::corrupt, "{}: tensor {} is none of {}", kFile, full,
                     of_embedding ? "an embedding" : "a linear layer");
    const std::vector<std::int64_t> shape = suffix->is_a ? std::vector<std::int64_t>{config.rank, linear.cols}
                                                         : std::vector<std::int64_t>{at->rows, config.rank};
    if (!tensor.plain() || !tensor.usable() || tensor.shape != shape)
      return failure(ErrorCode::corrupt, "{}: tensor {} is {} {}; the base model and r = {} ask for {}",
                     kFile, full, tensor.format, text_of(tensor.shape), config.rank, text_of(shape));
    const std::string other = fmt::format("{}{}{}", kRoot, module, suffix->other);
    if (find_tensor(other) == nullptr)
      return failure(ErrorCode::corrupt, "{}: tensor {} is missing", kFile, other);
    TRY_VOID(check_finite(tensor, pool));

    std::size_t& place = places[at->linear];
    if (place == SIZE_MAX) {
      place = adapter.changes.size();
      const std::size_t bytes = static_cast<std::size_t>(rank(linear)) * size_of(format_);
      adapter.changes.push_back({at->linear,
                                 std::vector<std::byte>(bytes * static_cast<std::size_t>(linear.cols)),
                                 std::vector<std::byte>(bytes * static_cast<std::size_t>(linear.rows))});
    }
    AdapterFile::Change& change = adapter.changes[place];
    const std::int64_t first = at->part * max_rank_;
    if (suffix->is_a)
      copy_block(tensor, 1, format_, change.a, of_embedding ? rank(linear) : linear.cols, first, 0,
                 of_embedding);
    else
      copy_block(tensor, of_embedding ? config.scale * embed_scale_ : config.scale, format_, change.b,
                 rank(linear), at->first_row, first, false);
  }
  if (adapter.changes.empty()) return failure(ErrorCode::corrupt, "{} holds no tensors", kFile);
  TRY_VOID(file.intact());
  const float scale[] = {config.scale};
  adapter.digest = hash_bytes(HashAlgorithm::sha256, file.bytes(),
                              hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(scale)), 0).low);
  return adapter;
}

Result<AdapterChange> AdapterReader::prepare(const AdapterFile::Change& change, Backend& backend) const {
  const Linear& linear = linears_[change.linear];
  const auto part = [&](const std::vector<std::byte>& bytes, std::int64_t rows, std::int64_t cols) {
    return MatrixPart{.values = View::of(const_cast<std::byte*>(bytes.data()), format_, {rows, cols})};
  };
  const bool of_embedding = change.linear == kEmbeddingIndex;
  const std::vector<MatrixPart> a{of_embedding ? part(change.a, linear.cols, rank(linear))
                                               : part(change.a, rank(linear), linear.cols)};
  const MatrixPart all_b = part(change.b, linear.rows, rank(linear));
  std::vector<MatrixPart> b;
  for (const RowRange& range : linear.order)
    b.push_back(all_b.row_range(range.begin, range.count, range.step));
  if (b.empty()) b.push_back(all_b);
  AdapterChange prepared;
  TRY(prepared.a, backend.ops.prepare(*backend.device, {.parts = a, .activation = format_}));
  TRY(prepared.b, backend.ops.prepare(*backend.device, {.parts = b, .activation = format_}));
  return prepared;
}

std::int64_t AdapterReader::bytes_max() const {
  std::int64_t numbers = 0;
  for (const Linear& linear : linears_) numbers += rank(linear) * (linear.rows + linear.cols);
  return numbers * static_cast<std::int64_t>(size_of(format_));
}

std::int64_t adapter_scratch_bytes(const ModelSpec& spec, DType activation, std::int64_t tokens,
                                   std::int64_t logit_rows, int max_rank) {
  if (max_rank == 0) return 0;
  const auto product_bytes = [&](std::int64_t n, std::int64_t rank, std::int64_t rows) {
    Scratch scratch;
    scratch.take(activation, {n, rank});
    scratch.take(activation, {n, rows});
    return scratch.bytes();
  };
  Scratch low;  // of embeddings, before it is converted
  low.take(DType::f32, {tokens, max_rank});
  std::int64_t most = std::max(low.bytes() + product_bytes(tokens, max_rank, spec.dim),
                               product_bytes(logit_rows, max_rank, spec.vocab));
  Network network = network_of(spec);
  for (const LinearParameter* linear : network.parameters().linears)
    most = std::max(most,
                    product_bytes(tokens, std::ssize(linear->weight.parts) * max_rank, linear->weight.rows));
  return most;
}

void add_changes(Backend& backend, const StepAdapters& all, Scratch scratch, const View& x, std::size_t index,
                 const View& y) {
  constexpr std::size_t kAtOnce = 64;  // adapters
  std::array<const Weight*, kAtOnce> a{}, b{};
  const Scratch empty = scratch;
  for (std::size_t next = 0; next < all.adapters.size();) {
    // Adapters next to each other that change this product.
    const std::size_t begin = next;
    std::size_t count = 0;
    for (; next < all.adapters.size() && count < kAtOnce; ++next, ++count) {
      const AdapterChange& change = (*all.adapters[next])[index];
      if (!change.a) break;
      a[count] = change.a.get();
      b[count] = change.b.get();
    }
    if (count == 0) {
      ++next;
      continue;
    }
    const Ops& ops = backend.ops;
    Stream& stream = *backend.stream;
    const std::int64_t places = all.tokens.size(0);
    scratch = empty;
    const View low = scratch.take(x.dtype, {places, a[0]->rows()});
    const View delta = scratch.take(x.dtype, {places, b[0]->rows()});
    const View starts =
        all.starts.rows(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count) + 1);
    ops.grouped_matmul(
        stream, {.x = x, .rows = all.tokens, .starts = starts, .w = std::span(a).first(count), .y = low});
    ops.grouped_matmul(stream, {.x = low, .starts = starts, .w = std::span(b).first(count), .y = delta});
    const std::int64_t first = all.host_starts[begin], end = all.host_starts[next];
    ops.add_rows(stream,
                 {.x = delta.rows(first, end - first), .rows = all.tokens.rows(first, end - first), .y = y});
  }
}

// Each adapter's A is looked up for all tokens: they are few numbers.
void add_embedding_changes(Backend& backend, const StepAdapters& all, const Scratch& scratch, const View& ids,
                           const View& y) {
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
  const std::int64_t n = ids.size(0), places = all.tokens.size(0);
  for (std::size_t i = 0; i < all.adapters.size(); ++i) {
    const AdapterChange& change = (*all.adapters[i])[kEmbeddingIndex];
    if (!change.a) continue;
    const Weight* b = change.b.get();
    Scratch own = scratch;
    const View found = own.take(DType::f32, {n, b->cols()});
    const View low = own.take(b->activation(), {n, b->cols()});
    const View delta = own.take(b->activation(), {places, b->rows()});
    ops.embed(stream, {.ids = ids, .table = *change.a, .out = found});
    ops.add_norm(stream, {.residual = found, .out = low});
    ops.grouped_matmul(stream, {.x = low,
                                .rows = all.tokens,
                                .starts = all.starts.rows(static_cast<std::int64_t>(i), 2),
                                .w = {&b, 1},
                                .y = delta});
    const std::int64_t first = all.host_starts[i], count = all.host_starts[i + 1] - first;
    ops.add_rows(stream, {.x = delta.rows(first, count), .rows = all.tokens.rows(first, count), .y = y});
  }
}

}  // namespace octavo
