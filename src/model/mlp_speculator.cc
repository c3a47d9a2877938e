#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "model/config.h"
#include "model/position_heads.h"

namespace octavo {
namespace {

constexpr std::string_view kSpeculatorField = "speculative_config";
constexpr int kPositionsMax = 32;
constexpr float kEps = 1e-6F;

class MlpSpeculator final : public PositionHeads {
 public:
  // token_weight is the factor of token embeddings relative to states.
  MlpSpeculator(Backend& backend, std::unique_ptr<LoadedPositionHeads> loaded, int positions,
                std::int64_t row, float token_weight)
      : PositionHeads(backend, std::move(loaded), positions, {}), row_(row), token_weight_(token_weight) {}

  Result<> reserve(std::int64_t sequences) override {
    const std::int64_t dim = model().spec.dim;
    const DType act = model().activation;
    TRY(hidden_, allocate(DType::f32, sequences, row_));
    TRY(x_, allocate(act, sequences, row_));
    TRY(sum_, allocate(DType::f32, sequences, dim));
    for (View* view : {&product_, &normed_, &state_}) {
      TRY(*view, allocate(act, sequences, dim));
    }
    return {};
  }

  void logits(int position, const View& ids, const View& out) override {
    const Ops& ops = backend_.ops;
    Stream& stream = *backend_.stream;
    const std::int64_t n = ids.size(0);
    const View sum = sum_.rows(0, n), product = product_.rows(0, n), normed = normed_.rows(0, n),
               state = state_.rows(0, n);
    const auto at = [&](const auto& of_positions) -> const auto& {
      return of_positions[std::min(static_cast<std::size_t>(position), of_positions.size() - 1)];
    };
    if (position == 0) {
      copy_hidden(n, hidden_.rows(0, n));
      ops.add_norm(
          stream,
          {.residual = hidden_.rows(0, n), .norm = parameters().input_norm.norm(), .out = x_.rows(0, n)});
    }
    ops.embed(stream,
              {.ids = ids, .table = *at(parameters().tables).weight, .scale = token_weight_, .out = sum});
    ops.matmul(stream, {.x = position == 0 ? x_.rows(0, n) : state,
                        .w = *at(parameters().products).weight.weight,
                        .y = product});
    ops.add_norm(stream,
                 {.residual = sum, .delta = product, .norm = at(parameters().norms).norm(), .out = normed});
    ops.activate(stream, {.x = normed, .activation = Activation::gelu, .gated = false, .y = state});
    ops.matmul(stream, {.x = state, .w = *at(parameters().outputs).weight, .y = out});
  }

 private:
  std::int64_t row_;
  float token_weight_;
  View hidden_;                    // f32 [sequences, row]
  View x_;                         // act [sequences, row]
  View sum_;                       // f32 [sequences, dim]
  View product_, normed_, state_;  // [sequences, dim], in the format of activations
};

}  // namespace

Result<std::unique_ptr<PositionHeads>> load_mlp_speculator(const std::string& path, const Model& other,
                                                           Backend& backend, const LoadOptions& options) {
  constexpr Config::Range kSizes{1, 1 << 20};
  TRY(Config config, Config::load(path));
  config.set_defaults(R"({"vocab_size": 32000, "emb_dim": 4096, "inner_dim": 0, "n_predict": 3,
                          "tie_weights": false, "scale_input": false})");
  TRY(const int vocab, config.integer("vocab_size", kSizes));
  TRY(const int row, config.integer("emb_dim", kSizes));
  TRY(const int inner, config.integer("inner_dim", {0, kSizes.most}));
  TRY(const int count, config.integer("n_predict", {1, kPositionsMax}));
  TRY(const bool tied, config.boolean("tie_weights"));
  TRY(const bool normed, config.boolean("scale_input"));
  if (vocab != other.spec.vocab)
    return invalid(kSpeculatorField,
                   "the MLP speculator has a vocabulary of {} tokens, but the model has {}: both must have "
                   "the same vocabulary",
                   vocab, other.spec.vocab);
  if (row != other.spec.dim)
    return invalid(
        kSpeculatorField,
        "the MLP speculator's emb_dim is {}, but the model's hidden_size is {}: both must be equal", row,
        other.spec.dim);
  const int dim = inner > 0 ? inner : row;
  TRY(const Checkpoint checkpoint, Checkpoint::open(path));

  const Names names;
  const Namer name(names, checkpoint.find("speculator.emb.0.weight") != nullptr ? "speculator." : "");
  PositionParameters positions;
  if (normed)
    positions.input_norm = {.spec = {.kind = NormKind::rms, .eps = kEps},
                            .weight = constant_vector(
                                std::vector(static_cast<std::size_t>(row), std::numbers::sqrt2_v<float> / 2)),
                            .bias = {}};
  // If tied, all positions share the matrices. Only the first product is separate, because its input may have
  // another width.
  for (int position = 0; position < count; ++position) {
    const auto numbered = [&](std::string_view what) { return fmt::format("{}.{}", what, position); };
    if (position == 0 || !tied || position == 1)
      positions.products.push_back(name.linear({numbered("proj")}, {dim}, position == 0 ? row : dim, false));
    if (position > 0 && tied) continue;
    positions.tables.push_back(name.table(numbered("emb"), vocab, dim, MatrixUse::table));
    positions.norms.push_back(
        name.norm({.kind = NormKind::rms, .eps = kEps, .bias = true}, numbered("ln"), dim));
    positions.outputs.push_back(name.table(numbered("head"), vocab, dim, MatrixUse::table));
  }
  ModelSpec spec;
  spec.architecture = "MLP speculator";
  spec.dim = dim;
  spec.vocab = vocab;
  // A state has the factor state_weight, an embedding the factor sqrt((1 - state_weight^2) * dim / 2). A norm
  // follows, so only the ratio of the factors matters.
  const double state_weight = std::pow(0.5, 0.5 / count);
  const double token_weight = std::sqrt((1 - state_weight * state_weight) * dim / 2) / state_weight;
  // Some programs store tied tensors again for each position.
  std::vector<std::string> ignorable;
  if (tied) ignorable = {"speculator.*", "emb.*", "proj.*", "ln.*", "head.*"};
  TRY(auto loaded, load_position_parameters(std::move(spec), std::move(positions), ignorable, checkpoint,
                                            other, backend, options));
  return std::make_unique<MlpSpeculator>(backend, std::move(loaded), count, row,
                                         static_cast<float>(token_weight));
}

}  // namespace octavo
