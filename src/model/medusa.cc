#include <algorithm>
#include <utility>

#include "model/config.h"
#include "model/drafter.h"
#include "model/position_heads.h"

namespace octavo {
namespace {

constexpr std::string_view kMedusaField = "speculative_config";

class Medusa final : public PositionHeads {
 public:
  Medusa(Backend& backend, std::unique_ptr<LoadedPositionHeads> loaded, int positions,
         std::vector<std::int32_t> tokens, float scale)
      : PositionHeads(backend, std::move(loaded), positions, std::move(tokens)), scale_(scale) {}

  Result<> reserve(std::int64_t sequences) override {
    const std::int64_t dim = model().spec.dim;
    TRY(residual_, allocate(DType::f32, sequences, dim));
    for (View* view : {&x_, &product_, &delta_}) {
      TRY(*view, allocate(model().activation, sequences, dim));
    }
    return {};
  }

  void logits(int position, const View& ids, const View& out) override {
    const Ops& ops = backend_.ops;
    Stream& stream = *backend_.stream;
    const std::int64_t n = ids.size(0);
    const View residual = residual_.rows(0, n), x = x_.rows(0, n), product = product_.rows(0, n);
    copy_hidden(n, residual);
    const std::span all(parameters().products);
    const std::size_t blocks = all.size() / static_cast<std::size_t>(positions());
    View delta;  // output of the previous block
    for (const LinearParameter& block : all.subspan(static_cast<std::size_t>(position) * blocks, blocks)) {
      ops.add_norm(stream, {.residual = residual, .delta = delta, .out = x});
      ops.matmul(stream, {.x = x, .w = *block.weight.weight, .bias = block.bias.value, .y = product});
      delta = delta_.rows(0, n);
      ops.activate(stream, {.x = product, .activation = Activation::silu, .gated = false, .y = delta});
    }
    ops.add_norm(stream, {.residual = residual, .delta = delta, .out = x});
    ops.matmul(stream, {.x = x, .w = output(position), .y = out});
    if (scale_ != 1) ops.scale_logits(stream, {.logits = out, .scale = scale_});
  }

 private:
  const Weight& output(int position) const {
    const std::vector<MatrixParameter>& own = parameters().outputs;
    if (own.empty()) return other().whole_ends().output();
    return *own[std::min(static_cast<std::size_t>(position), own.size() - 1)].weight;
  }

  float scale_;
  View residual_;             // f32 [sequences, dim]
  View x_, product_, delta_;  // [sequences, dim], in the format of activations
};

// Tensor names of vLLM's checkpoints, or of the authors' checkpoints.
struct Layout {
  std::string prefix;
  bool authors;

  std::string block(int position, int number) const {
    return fmt::format(fmt::runtime(authors ? "{}{}.{}.linear" : "{}blocks.{}.layers.{}"), prefix, position,
                       number);
  }
  std::string output(int position, int blocks) const {
    return authors ? fmt::format("{}{}.{}", prefix, position, blocks)
                   : fmt::format("{}lm_heads.{}", prefix, position);
  }
};

bool has_matrix(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.find(name + ".weight") != nullptr;
}

Result<Layout> layout_of(const Checkpoint& checkpoint) {
  for (const char* prefix : {"", "medusa_heads."})
    for (const bool authors : {false, true})
      if (const Layout layout{prefix, authors}; has_matrix(checkpoint, layout.block(0, 0))) return layout;
  return field_failure(kMedusaField, ErrorCode::corrupt,
                       "the checkpoint has no Medusa heads: neither tensor blocks.0.layers.0.weight nor "
                       "0.0.linear.weight exists");
}

// Returns the token ids of a reduced vocabulary. The result is empty if the checkpoint has none.
Result<std::vector<std::int32_t>> read_token_map(const Checkpoint& checkpoint, int vocab) {
  std::vector<std::int32_t> tokens;
  const StoredTensor* map = checkpoint.find("token_map");
  if (map == nullptr) return tokens;
  TRY(const std::vector<std::int64_t> numbers, integers_of(*map));
  for (const std::int64_t number : numbers) {
    if (number < 0 || number >= vocab)
      return failure(ErrorCode::corrupt,
                     "tensor token_map: the id {} must be below the size of the vocabulary, {}", number,
                     vocab);
    tokens.push_back(static_cast<std::int32_t>(number));
  }
  return tokens;
}

// Returns the output matrix of a head. If the vocabulary is reduced but the matrix has rows for all tokens,
// selects the rows of the reduced vocabulary.
MatrixParameter output_matrix(const Namer& name, const Checkpoint& checkpoint, const std::string& tensor,
                              const ModelSpec& other, std::span<const std::int32_t> tokens) {
  const std::int64_t rows = tokens.empty() ? other.vocab : std::ssize(tokens);
  const std::vector<std::int64_t>& shape = checkpoint.find(tensor + ".weight")->shape;
  if (tokens.empty() || shape.empty() || shape[0] != other.vocab)
    return name.table(tensor, rows, other.dim, MatrixUse::table);
  MatrixParameter matrix = name.table(tensor, other.vocab, other.dim, MatrixUse::table);
  for (const std::int32_t token : tokens) matrix.order.push_back({token, 1});
  matrix.rows = rows;
  return matrix;
}

}  // namespace

Result<std::unique_ptr<PositionHeads>> load_medusa(const std::string& path, const Model& other,
                                                   Backend& backend, const LoadOptions& options) {
  TRY(const Config config, Config::load(path));
  TRY(const double scale, config.number("logit_scale", {0, 1e6}, 1));
  TRY(const Checkpoint checkpoint, Checkpoint::open(path));
  TRY(const Layout layout, layout_of(checkpoint));
  TRY(std::vector<std::int32_t> tokens, read_token_map(checkpoint, other.spec.vocab));
  int count = 0, blocks = 0;
  while (has_matrix(checkpoint, layout.block(count, 0))) ++count;
  while (has_matrix(checkpoint, layout.block(0, blocks))) ++blocks;

  const Names names;
  const Namer name(names, "");
  PositionParameters positions;
  for (int position = 0; position < count; ++position)
    for (int i = 0; i < blocks; ++i) {
      const std::string block = layout.block(position, i);
      const bool bias = checkpoint.find(block + ".bias") != nullptr;
      positions.products.push_back(name.linear({block}, {other.spec.dim}, other.spec.dim, bias));
    }
  // If all heads share a matrix, it may have the first head's name.
  std::vector<std::string> outputs;
  for (int position = 0; position < count; ++position)
    if (const std::string own = layout.output(position, blocks); has_matrix(checkpoint, own))
      outputs.push_back(own);
  if (const std::string one = layout.prefix + "lm_head"; outputs.empty() && has_matrix(checkpoint, one))
    outputs.push_back(one);
  if (outputs.size() > 1 && std::cmp_less(outputs.size(), count))
    return failure(ErrorCode::corrupt, "the checkpoint has {} Medusa heads, but {} output matrices", count,
                   outputs.size());
  for (const std::string& tensor : outputs)
    positions.outputs.push_back(output_matrix(name, checkpoint, tensor, other.spec, tokens));
  if (outputs.empty() && !tokens.empty())
    return field_failure(kMedusaField, ErrorCode::unsupported,
                         "Medusa heads with a token_map need an output matrix, but the checkpoint has none");

  const int columns = tokens.empty() ? other.spec.vocab : static_cast<int>(tokens.size());
  ModelSpec spec;
  spec.architecture = "Medusa";
  spec.dim = other.spec.dim;
  spec.vocab = columns;
  TRY(auto loaded, load_position_parameters(std::move(spec), std::move(positions), {"token_map"}, checkpoint,
                                            other, backend, options));
  return std::make_unique<Medusa>(backend, std::move(loaded), count, std::move(tokens),
                                  static_cast<float>(scale));
}

}  // namespace octavo
