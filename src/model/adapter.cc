#include "model/adapter.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
#include "model/adapter_file.h"
#include "model/network.h"
#include "weights/gguf.h"

namespace octavo {
namespace {

// PEFT adds this prefix to module names. Some adapters lack it.
constexpr std::string_view kRoot = "base_model.model.";

std::string text_of(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// End of a tensor's name, after the name of the module.
struct Suffix {
  std::string_view text, other;  // `text` is the suffix of A or B, `other` is the suffix of the other one
  bool is_a;
  bool of_embedding;
};
constexpr Suffix kSuffixes[] = {{".lora_A.weight", ".lora_B.weight", true, false},
                                {".lora_B.weight", ".lora_A.weight", false, false},
                                {".lora_embedding_A", ".lora_embedding_B", true, true},
                                {".lora_embedding_B", ".lora_embedding_A", false, true},
                                // GGUF files
                                {".weight.lora_a", ".weight.lora_b", true, false},
                                {".weight.lora_b", ".weight.lora_a", false, false}};
// If an adapter changes the embedding or the output matrix, PEFT also stores the base model's matrix in the
// file. It is not needed.
constexpr std::string_view kBaseSuffix = ".base_layer.weight";

// Returns null if the tensor is neither A nor B.
const Suffix* suffix_of(std::string_view tensor) {
  const auto found =
      std::ranges::find_if(kSuffixes, [&](const Suffix& one) { return tensor.ends_with(one.text); });
  return found == std::end(kSuffixes) ? nullptr : found;
}

std::string_view adapted_module(std::string_view tensor, std::string_view suffix) {
  const std::size_t root = tensor.starts_with(kRoot) ? kRoot.size() : 0;
  return tensor.substr(root, tensor.size() - root - suffix.size());
}

// Part of a tensor. Element (r, c) has the index first + r * row_step + c * col_step.
struct MatrixBlock {
  std::int64_t rows, cols, first, row_step, col_step;
};

// Copies a block, times `scale`, to the rows of `to` from `row` on and the columns from `column` on. A row of
// `to` has `stride` elements.
void copy_block(const StoredTensor& tensor, const MatrixBlock& from, float scale, DType format,
                std::vector<std::byte>& to, std::int64_t stride, std::int64_t row, std::int64_t column) {
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c)
      put_number(to.data(), format, static_cast<std::size_t>((row + r) * stride + column + c),
                 scale * number_at(tensor, from.first + r * from.row_step + c * from.col_step));
}

// An adapter may call a module of the image encoder "visual.blocks.0" while the checkpoint calls it
// "model.visual.blocks.0", or the reverse.
std::string_view without_model(std::string_view module) {
  constexpr std::string_view kModel = "model.";
  if (module.starts_with(kModel)) module.remove_prefix(kModel.size());
  return module;
}

// PEFT adds ".base_layer" to a module's name if the adapter changes several parameters of the module.
std::string_view without_base_layers(std::string_view module) {
  constexpr std::string_view kWrapped = ".base_layer";
  while (module.ends_with(kWrapped)) module.remove_suffix(kWrapped.size());
  return module;
}

}  // namespace

AdapterReader::AdapterReader(const ModelSpec& spec, DType format, int max_rank, bool experts)
    : prefixes_(spec.names.prefixes),
      format_(format),
      max_rank_(max_rank),
      experts_(experts),
      gguf_(spec.names.gguf),
      tied_(spec.logits.tied),
      embed_scale_(spec.embedding.scale) {
  const RowRange tokens{spec.shard.first(spec.vocab), spec.shard.count(spec.vocab)};
  linears_.push_back({.rows = spec.dim,
                      .cols = spec.vocab,
                      .parts = 1,
                      .blocks = {{.order = {{0, spec.dim}}}},
                      .columns = tokens});
  linears_.push_back({.rows = spec.vocab,
                      .cols = spec.dim,
                      .parts = 1,
                      .blocks = {{.order = {tokens}}},
                      .columns = {0, spec.dim}});
  modules_[spec.names.embedding.tokens] = {{.linear = kEmbeddingIndex, .rows = spec.dim}};
  modules_[spec.names.lm_head] = {{.linear = kOutputIndex, .rows = spec.vocab}};
  const std::string layers = prefixes_[0] + spec.names.layers;
  ModelSpec whole = spec;
  whole.stage = {};
  Network network = network_of(whole);
  const ParameterList parameters = network.parameters();
  for (const LinearParameter* linear : parameters.linears) {
    const MatrixParameter& w = linear->weight;
    linears_.push_back(linear_of(w));
    if (w.padded()) continue;  // Skips padded matrices: adapters have no rows or columns for the padding.
    std::int64_t row = 0;
    for (std::size_t p = 0; p < w.parts.size(); ++p) {
      const Slot& slot = w.parts[p];
      const std::int64_t rows = slot.shape[w.transposed ? 1 : 0];
      // Skips slots that belong to a head, because adapters change only layers.
      if (!slot.name.starts_with(layers)) continue;
      add_module(
          slot.name,
          {.linear = linear->index, .part = static_cast<std::int64_t>(p), .first_row = row, .rows = rows});
      row += rows;
    }
  }
  if (spec.media.tower && spec.media.tower->encodes_media() && !spec.has_audio_encoder())
    add_tower(*spec.media.tower);
  if (experts)
    for (const ParameterList::ExpertProduct& product : parameters.experts) add_experts(spec, product);
  note_own(spec);
}

void AdapterReader::note_own(const ModelSpec& spec) {
  linears_[kEmbeddingIndex].own = spec.stage.is_first();
  linears_[kOutputIndex].own = spec.stage.is_last();
  Network network = network_of(spec);
  const ParameterList parameters = network.parameters();
  for (const LinearParameter* linear : parameters.linears) linears_[linear->index].own = true;
  for (const ParameterList::ExpertProduct& product : parameters.experts)
    for (const MatrixParameter& expert : *product.matrices)
      if (experts_) linears_[expert.index].own = true;
}

AdapterReader::Linear AdapterReader::linear_of(const MatrixParameter& w) {
  if (w.padded())
    return {.rows = w.rows, .cols = w.cols, .parts = std::ssize(w.parts), .blocks = {{}}, .columns = {0, w.cols}};
  std::vector<std::int64_t> part_rows;
  for (const Slot& slot : w.parts) part_rows.push_back(slot.shape[w.transposed ? 1 : 0]);
  Linear linear{.rows = w.rows,
                .cols = w.cols,
                .parts = std::ssize(w.parts),
                .blocks = blocks_of(part_rows, w.order),
                .columns = {0, w.cols}};
  if (!w.sharded) return linear;
  linear.rows = std::accumulate(part_rows.begin(), part_rows.end(), std::int64_t{0});
  linear.cols = w.parts[0].shape[w.transposed ? 0 : 1];
  linear.columns = {w.first_col, w.cols};
  return linear;
}

// Divides the rows of a matrix into blocks. A block is a range of consecutive rows of one stacked tensor. If
// the rows of several tensors alternate, these tensors form one block.
std::vector<AdapterReader::Linear::Block> AdapterReader::blocks_of(std::span<const std::int64_t> part_rows,
                                                                   std::vector<RowRange> order) {
  std::vector<std::int64_t> ends(part_rows.size());
  std::partial_sum(part_rows.begin(), part_rows.end(), ends.begin());
  if (order.empty())
    for (std::size_t p = 0; p < ends.size(); ++p) order.push_back({ends[p] - part_rows[p], part_rows[p]});
  std::erase_if(order, [](const RowRange& range) { return range.count == 0; });
  const auto part_of = [&](std::int64_t row) { return std::ranges::upper_bound(ends, row) - ends.begin(); };
  std::vector<Linear::Block> blocks;
  for (const RowRange& range : order) {
    const std::int64_t part = part_of(range.begin);
    const bool changes_part = part_of(range.begin + (range.count - 1) * range.step) != part;
    if (blocks.empty() || blocks.back().part != part) blocks.push_back({.part = part});
    blocks.back().order.push_back(range);
    if (changes_part || blocks.size() > part_rows.size()) return {{.part = -1, .order = std::move(order)}};
  }
  return blocks;
}

void AdapterReader::add_tower(ModelSpec tower) {
  for (const std::string& prefix : tower.names.prefixes) {
    Network network = network_of(tower, prefix);
    for (const LinearParameter* linear : network.parameters().linears)
      for (const Slot& slot : linear->weight.parts)
        tower_.emplace(without_model(std::string_view(slot.name).substr(0, slot.name.rfind('.'))));
  }
  if (!tower.other_names) return;
  tower.names = *std::exchange(tower.other_names, std::nullopt);
  add_tower(std::move(tower));
}

bool AdapterReader::is_of_tower(std::string_view module) const {
  return tower_.contains(without_model(module));
}

// If the checkpoint stores each expert as one tensor, an adapter has either one module per expert, or one
// module `experts` with one parameter for all experts, in which gate and up are one matrix.
void AdapterReader::add_experts(const ModelSpec& spec, const ParameterList::ExpertProduct& product) {
  const std::vector<MatrixParameter>& matrices = *product.matrices;
  const std::int64_t count = std::ssize(matrices);
  for (const MatrixParameter& w : matrices) {
    const std::vector<std::int64_t> part_rows(w.parts.size(), w.rows / std::ssize(w.parts));
    std::vector<Linear::Block> blocks = blocks_of(part_rows, w.order);
    // An adapter may have one A and B for gate and up together (`all` below). Each column of this B changes
    // the rows of both tensors, so all rows form one block. This does not occur if the experts are a stack.
    if (w.slice < 0 && blocks.size() > 1) {
      Linear::Block whole{.part = -1};
      for (const Linear::Block& block : blocks) std::ranges::copy(block.order, std::back_inserter(whole.order));
      blocks = {std::move(whole)};
    }
    linears_.push_back({.rows = w.rows,
                        .cols = w.cols,
                        .parts = std::ssize(w.parts),
                        .blocks = std::move(blocks),
                        .columns = {0, w.cols}});
    if (w.slice > 0) continue;
    std::int64_t row = 0;
    for (std::size_t p = 0; p < w.parts.size(); ++p) {
      const Slot& slot = w.parts[p];
      const std::int64_t rows = w.rows / std::ssize(w.parts);
      add_module(slot.name, {.linear = w.index,
                             .part = static_cast<std::int64_t>(p),
                             .first_row = row,
                             .rows = rows,
                             .experts = w.slice < 0 ? 1 : count});
      row += rows;
    }
  }
  const MatrixParameter& first = matrices[0];
  if (first.slice >= 0) return;
  const std::string& tensor = first.parts[0].name;
  const std::string own = tensor.substr(0, tensor.rfind(".0."));
  const std::size_t layer_end = tensor.find('.', prefixes_[0].size() + spec.names.layers.size());
  const Module all{.linear = first.index, .rows = first.rows, .experts = count};
  const std::string usual = tensor.substr(0, layer_end) + ".mlp.experts";
  add_module(own + ".weight", all);
  if (usual != own) add_module(usual + ".weight", all);
}

// `tensor` begins with prefixes_[0]. The module's name ends at the last dot.
void AdapterReader::add_module(std::string_view tensor, const Module& module) {
  const std::string_view name = tensor.substr(prefixes_[0].size(), tensor.rfind('.') - prefixes_[0].size());
  modules_[std::string(name)].push_back(module);
}

// The name of the output matrix has no prefix.
Result<const AdapterReader::Modules*> AdapterReader::find(std::string_view name) const {
  const auto is_output = [](const auto& found) { return found->second[0].linear == kOutputIndex; };
  if (const auto found = modules_.find(name); found != modules_.end() && is_output(found))
    return &found->second;
  for (const std::string& prefix : prefixes_)
    if (name.starts_with(prefix))
      if (const auto found = modules_.find(without_base_layers(name.substr(prefix.size())));
          found != modules_.end() && !is_output(found))
        return &found->second;
  if (!experts_ && name.contains(".experts"))
    return failure(ErrorCode::unsupported,
                   "{}: adapters of single experts work only on CPUs: set --device cpu", name);
  return failure(ErrorCode::unsupported,
                 "{} is not a linear layer of the base model that an adapter can change", name);
}

// A module may have several parameters. Returns the one that A and B fit.
Result<const AdapterReader::Module*> AdapterReader::find(std::string_view name, const StoredTensor& a,
                                                         const StoredTensor& b, int rank) const {
  using Shape = std::vector<std::int64_t>;
  TRY(const Modules* modules, find(name));
  Shape a_shape, b_shape;
  for (const Module& module : *modules) {
    a_shape = {module.experts * rank, linears_[module.linear].cols};
    b_shape = {module.rows, module.experts * rank};
    if (a.shape == a_shape && b.shape == b_shape) return &module;
  }
  const bool a_fits = a.shape == a_shape;
  const StoredTensor& wrong = a_fits ? b : a;
  return failure(ErrorCode::corrupt, "tensor {} is {} {}, but the base model and r = {} require {}",
                 wrong.name, wrong.format, text_of(wrong.shape), rank, text_of(a_fits ? b_shape : a_shape));
}

// A different shape means that the adapter was trained with a different vocabulary.
Result<> AdapterReader::check_base_matrix(const StoredTensor& tensor, std::string_view module) const {
  TRY(const Modules* at, find(module));
  const std::size_t index = at->front().linear;
  const Linear& linear = linears_[index];
  const bool is_output = index == kOutputIndex;
  if (!is_output && index != kEmbeddingIndex)
    return failure(ErrorCode::unsupported,
                   "tensor {} replaces a matrix of the base model: an adapter can replace only the embedding "
                   "and the output matrix",
                   tensor.name);
  const std::vector<std::int64_t> shape{is_output ? linear.rows : linear.cols,
                                        is_output ? linear.cols : linear.rows};
  if (tensor.shape != shape)
    return failure(ErrorCode::corrupt, "tensor {} has shape {}, but the base model's tensor has {}",
                   tensor.name, text_of(tensor.shape), text_of(shape));
  return {};
}

Result<AdapterFile> AdapterReader::read(const std::string& path) const {
  if (gguf_ && !is_gguf(path))
    return failure(ErrorCode::unsupported,
                   "{} is not a GGUF file, but the base model is: convert the adapter with llama.cpp's "
                   "convert_lora_to_gguf.py, or serve the model's folder",
                   path);
  if (!gguf_ && is_gguf(path))
    return failure(ErrorCode::unsupported,
                   "{} is a GGUF file, but the base model is a folder: give the adapter's folder", path);
  TRY(const StoredAdapter stored, open_adapter(path));
  if (const int rank = stored.config.rank_max(); rank > max_rank_)
    return invalid("max_lora_rank",
                   "the adapter's r is {}, but the server accepts at most {}: increase --max-lora-rank", rank,
                   max_rank_);
  auto adapter = read_tensors(path, stored.config, stored.tensors);
  if (!adapter) {
    adapter.error().message.insert(0, fmt::format("{}: ", stored.name));
    return adapter;
  }
  TRY_VOID(stored.file.intact());
  adapter->digest = hash_bytes(HashAlgorithm::sha256, stored.file.bytes(), adapter->digest.low);
  return adapter;
}

struct AdapterReader::Half {
  const StoredTensor& tensor;
  const Module& module;
  bool is_a;
  int rank;
  float scale;
};

Result<AdapterReader::Half> AdapterReader::half_of(const StoredTensor& tensor, std::string_view module,
                                                   const AdapterConfig& config,
                                                   std::span<const StoredTensor> tensors) const {
  const std::string_view full = tensor.name;
  const Suffix& suffix = *suffix_of(full);
  const std::string other_name =
      fmt::format("{}{}", full.substr(0, full.size() - suffix.text.size()), suffix.other);
  const auto other = std::ranges::lower_bound(tensors, other_name, {}, &StoredTensor::name);
  if (other == tensors.end() || other->name != other_name)
    return failure(ErrorCode::corrupt, "tensor {} is missing", other_name);
  const int rank = config.rank.of(without_base_layers(module));
  TRY(const Module* at,
      suffix.is_a ? find(module, tensor, *other, rank) : find(module, *other, tensor, rank));
  const bool of_embedding = at->linear == kEmbeddingIndex;
  if (of_embedding != suffix.of_embedding)
    return failure(ErrorCode::corrupt, "tensor {} does not belong to {} of the base model", full,
                   of_embedding ? "an embedding" : "a linear layer");
  if (!tensor.plain() || !tensor.usable())
    return failure(ErrorCode::corrupt,
                   "tensor {} is {}, which adapters cannot have: must be F32, F16 or BF16", full,
                   tensor.format);
  return Half{tensor, *at, suffix.is_a, rank, config.scale_of(without_base_layers(module))};
}

void AdapterReader::put(const Half& half, std::int64_t expert, AdapterFile::Change& change) const {
  const Module& at = half.module;
  const Linear& linear = linears_[change.linear];
  const bool of_embedding = at.linear == kEmbeddingIndex;
  const std::int64_t r = half.rank, first = at.part * max_rank_, cols = linear.cols;
  if (!half.is_a)
    copy_block(half.tensor, {at.rows, r, expert, r * at.experts, at.experts},
               of_embedding ? half.scale * embed_scale_ : half.scale, format_, change.b, rank(linear),
               at.first_row, first);
  else if (of_embedding)
    copy_block(half.tensor, {cols, r, 0, 1, cols}, 1, format_, change.a, rank(linear), 0, first);
  else
    copy_block(half.tensor, {r, cols, expert * r * cols, cols, 1}, 1, format_, change.a, cols, first, 0);
}

Result<AdapterFile> AdapterReader::read_tensors(const std::string& directory, const AdapterConfig& config,
                                                std::span<const StoredTensor> tensors) const {
  ThreadPool pool(1);
  AdapterFile adapter;
  std::vector<float> scales;
  // index in adapter.changes for each product; SIZE_MAX: no change
  std::vector<std::size_t> index_of(linears_.size(), SIZE_MAX);
  const auto change_of = [&](std::size_t index) -> AdapterFile::Change& {
    if (index_of[index] == SIZE_MAX) {
      index_of[index] = adapter.changes.size();
      const Linear& linear = linears_[index];
      const std::size_t bytes = static_cast<std::size_t>(rank(linear)) * size_of(format_);
      adapter.changes.push_back({index, std::vector<std::byte>(bytes * static_cast<std::size_t>(linear.cols)),
                                 std::vector<std::byte>(bytes * static_cast<std::size_t>(linear.rows))});
    }
    return adapter.changes[index_of[index]];
  };
  std::set<std::tuple<std::size_t, std::int64_t, bool>> seen;
  std::set<std::string_view> left_out;  // modules of an encoder, which are ignored
  for (const StoredTensor& tensor : tensors) {
    const std::string_view full = tensor.name;
    const Suffix* const suffix = suffix_of(full);
    if (suffix == nullptr && !full.ends_with(kBaseSuffix))
      return failure(ErrorCode::unsupported, "tensor {} is not part of a LoRA adapter of linear layers",
                     full);
    const std::string_view module = adapted_module(full, suffix ? suffix->text : kBaseSuffix);
    if (suffix == nullptr) {
      TRY_VOID(check_base_matrix(tensor, module));
      continue;
    }
    if (is_of_tower(module) && !find(module)) {
      left_out.emplace(module);
      continue;
    }
    TRY(const Half half, half_of(tensor, module, config, tensors));
    TRY_VOID(check_finite(tensor, pool));
    scales.push_back(half.scale);
    for (std::int64_t e = 0; e < half.module.experts; ++e) {
      const std::size_t index = half.module.linear + static_cast<std::size_t>(e);
      if (!seen.emplace(index, half.module.part, half.is_a).second)
        return failure(ErrorCode::corrupt, "tensor {} has a duplicate under another name", full);
      put(half, e, change_of(index));
    }
  }
  // With config.tied, PEFT stores the changes of the embedding and of the output matrix, with equal contents.
  // If the model does not tie them (tied_), ensure_weight_tying has no effect.
  if (config.tied && tied_ && index_of[kEmbeddingIndex] != SIZE_MAX && index_of[kOutputIndex] == SIZE_MAX)
    return failure(ErrorCode::corrupt,
                   "ensure_weight_tying is set and the embedding changes, but the output matrix does not");
  if (adapter.changes.empty())
    return failure(ErrorCode::corrupt, "the adapter contains no tensors{}",
                   left_out.empty()
                       ? ""
                       : " except those of the encoder of images or sound, which adapters cannot change");
  if (!left_out.empty())
    log_warning(
        "the adapter in {} cannot change the encoder of images or sound, so {} of its layers are ignored: {}",
        directory, left_out.size(), fmt::join(left_out, ", "));
  adapter.digest = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(scales)), 0);
  return adapter;
}

Result<AdapterChange> AdapterReader::prepare(const AdapterFile::Change& change, Backend& backend) const {
  const Linear& linear = linears_[change.linear];
  if (!linear.own) return AdapterChange{};
  const auto part = [&](const std::vector<std::byte>& bytes, std::int64_t rows, std::int64_t cols) {
    return MatrixPart{.values = View::of(const_cast<std::byte*>(bytes.data()), format_, {rows, cols})};
  };
  const bool of_embedding = change.linear == kEmbeddingIndex;
  const auto& [first, count, step] = linear.columns;
  std::vector<MatrixPart> a{of_embedding ? part(change.a, linear.cols, rank(linear)).row_range(first, count)
                                         : part(change.a, rank(linear), linear.cols)};
  if (!of_embedding) a[0].values = a[0].values.columns(first, count);
  const MatrixPart all_b = part(change.b, linear.rows, rank(linear));
  AdapterChange prepared;
  TRY(prepared.a, backend.ops.prepare(*backend.device, {.parts = a, .activation = format_}));
  std::int64_t row = 0;
  for (const Linear::Block& block : linear.blocks) {
    std::vector<MatrixPart> b;
    const std::int64_t column = std::max<std::int64_t>(block.part, 0) * max_rank_;
    for (const RowRange& range : block.order) {
      MatrixPart& rows = b.emplace_back(all_b.row_range(range.begin, range.count, range.step));
      if (block.part >= 0) rows.values = rows.values.columns(column, max_rank_);
    }
    TRY(WeightPtr weight, backend.ops.prepare(*backend.device, {.parts = b, .activation = format_}));
    const std::int64_t rows = weight->rows();
    prepared.blocks.push_back({std::move(weight), row, column});
    row += rows;
  }
  return prepared;
}

std::int64_t AdapterReader::bytes_max() const {
  std::int64_t numbers = 0;
  for (const Linear& linear : linears_) {
    if (!linear.own) continue;
    const bool blocks = linear.blocks[0].part >= 0;
    numbers += rank(linear) * linear.cols + (blocks ? max_rank_ : rank(linear)) * linear.rows;
  }
  return numbers * static_cast<std::int64_t>(size_of(format_));
}

}  // namespace octavo
