// Operators that process each row separately.
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/host_device.h"
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {

double activation(Activation kind, double x) {
  switch (kind) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Activation::relu_squared:
      return x < 0 ? 0 : x * x;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case Activation::swigluoai:
    case Activation::xielu:
      break;
  }
  return x;
}

double xielu(double x, const View& slopes) {
  const auto softplus = [&](std::int64_t i) { return std::log1p(std::exp(at(slopes, {i}))); };
  if (x > 0) return softplus(0) * x * x + 0.5 * x;
  return (std::expm1(std::min(x, -1e-6)) - x) * (0.5 + softplus(1)) + 0.5 * x;
}

void normalize(const Norm& norm, std::vector<double>& row, std::int64_t weight_offset) {
  if (norm.kind == NormKind::none) return;
  const auto n = static_cast<double>(row.size());
  double mean = 0, scale = 1;
  if (norm.kind == NormKind::layer) {
    for (const double x : row) mean += x;
    mean /= n;
  }
  if (norm.kind != NormKind::affine) {
    double squares = 0;
    for (const double x : row) squares += (x - mean) * (x - mean);
    scale = 1 / std::sqrt(squares / n + norm.eps);
  }
  const float* weight = norm.weight.as<float>() + weight_offset;
  const float* bias = norm.bias ? norm.bias.as<float>() + weight_offset : nullptr;
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = (row[i] - mean) * scale * weight[i] + (bias != nullptr ? bias[i] : 0.0);
}

void own_ids(Stream&, const OwnIdsArgs& args) {
  for (std::int64_t i = 0; i < args.ids.size(0); ++i) {
    const std::int32_t id = args.ids.as<std::int32_t>()[i];
    args.own.as<std::int32_t>()[i] = args.rows.has(id) ? id - args.rows.first : 0;
  }
}

void keep_own_rows(Stream&, const KeepOwnRowsArgs& args) {
  for (std::int64_t i = 0; i < args.x.size(0); ++i)
    if (!args.rows.has(args.ids.as<std::int32_t>()[i]))
      for (std::int64_t k = 0; k < args.x.size(1); ++k) put(args.x, {i, k}, 0);
}

void embed(Stream&, const EmbedArgs& args) {
  check_indices("token id", args.ids, args.table.rows());
  if (args.position_table != nullptr) check_indices("position", args.positions, args.position_table->rows());
  if (args.type_table != nullptr) check_indices("token type", args.types, args.type_table->rows());
  const View table = static_cast<const ReferenceWeight&>(args.table).view();
  for (std::int64_t i = 0; i < args.out.size(0); ++i) {
    const std::int32_t id = args.ids.as<std::int32_t>()[i];
    for (std::int64_t k = 0; k < args.out.size(1); ++k) {
      const auto of = [&](const Weight* more, const View& rows) {
        if (more == nullptr) return 0.0;
        const View view = static_cast<const ReferenceWeight&>(*more).view();
        return at(view, {rows.as<std::int32_t>()[i], k});
      };
      put(args.out, {i, k},
          at(table, {id, k}) * args.scale + of(args.position_table, args.positions) +
              of(args.type_table, args.types));
    }
  }
}

void add_norm(Stream&, const AddNormArgs& args) {
  const std::int64_t dim = args.residual.size(1);
  std::vector<double> row(static_cast<std::size_t>(dim));
  const auto unit = [&](std::int64_t k) -> double& { return row[static_cast<std::size_t>(k)]; };
  for (std::int64_t i = 0; i < args.residual.size(0); ++i) {
    if (args.delta) {
      for (std::int64_t k = 0; k < dim; ++k) unit(k) = at(args.delta, {i, k});
      normalize(args.delta_norm, row);
      for (std::int64_t k = 0; k < dim; ++k)
        put(args.residual, {i, k}, at(args.residual, {i, k}) + args.delta_scale * unit(k));
    }
    if (args.residual_scale)
      for (std::int64_t k = 0; k < dim; ++k)
        put(args.residual, {i, k}, at(args.residual, {i, k}) * at(args.residual_scale, {0}));
    if (!args.out && !args.replace) continue;
    for (std::int64_t k = 0; k < dim; ++k) unit(k) = at(args.residual, {i, k});
    normalize(args.norm, row);
    for (std::int64_t k = 0; k < dim; ++k) {
      if (args.replace) put(args.residual, {i, k}, unit(k));
      if (args.out) put(args.out, {i, k}, unit(k));
    }
  }
}

void sum_squares(Stream&, const SumSquaresArgs& args) {
  for (std::int64_t i = 0; i < args.x.size(0); ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < args.x.size(1); ++k) sum += at(args.x, {i, k}) * at(args.x, {i, k});
    put(args.sums, {i, 0}, sum * args.factor);
  }
}

void norm_by_squares(Stream&, const NormBySquaresArgs& args) {
  for (std::int64_t i = 0; i < args.x.size(0); ++i) {
    const double scale = 1 / std::sqrt(at(args.sums, {i, 0}) / static_cast<double>(args.count) + args.eps);
    for (std::int64_t k = 0; k < args.x.size(1); ++k)
      put(args.x, {i, k}, at(args.x, {i, k}) * scale * at(args.weight, {k}));
  }
}

void activate(Stream&, const ActivateArgs& args) {
  const std::int64_t h = args.y.size(1);
  const double limit = args.limit;
  for (std::int64_t i = 0; i < args.y.size(0); ++i)
    for (std::int64_t k = 0; k < h; ++k) {
      const double x = at(args.x, {i, k});
      const double up = args.gated ? at(args.x, {i, h + k}) : 1;
      if (args.activation == Activation::xielu) {
        put(args.y, {i, k}, xielu(x, args.slopes));
        continue;
      }
      if (args.activation != Activation::swigluoai) {
        put(args.y, {i, k}, activation(args.activation, x) * up);
        continue;
      }
      const double gate = std::isnan(x) ? x : std::min(x, limit);
      const double clamped = std::isnan(up) ? up : std::clamp(up, -limit, limit);
      put(args.y, {i, k}, gate / (1 + std::exp(-args.alpha * gate)) * (clamped + 1));
    }
}

void keep_tail(Stream&, const KeepTailArgs& args) {
  const std::int64_t dim = args.x.size(1);
  for (std::int64_t i = 0; i < args.x.size(0); ++i) {
    double mean = 0, squares = 0;
    for (std::int64_t k = 0; k < dim; ++k) mean += at(args.x, {i, k}) / static_cast<double>(dim);
    for (std::int64_t k = 0; k < dim; ++k) squares += std::pow(at(args.x, {i, k}) - mean, 2);
    const double cut = mean + args.deviations * std::sqrt(squares / static_cast<double>(dim));
    for (std::int64_t k = 0; k < dim; ++k)
      put(args.x, {i, k}, activation(Activation::relu, at(args.x, {i, k}) - cut));
  }
}

void scale_rows(Stream&, const ScaleRowsArgs& args) {
  if (args.rows) check_indices("row", args.rows, args.factors.size(0));
  for (std::int64_t i = 0; i < args.y.size(0); ++i) {
    const double factor = at(args.factors, {args.rows ? args.rows.as<std::int32_t>()[i] : i});
    for (std::int64_t k = 0; k < args.y.size(1); ++k) put(args.y, {i, k}, at(args.x, {i, k}) * factor);
  }
}

void clamp(Stream&, const ClampArgs& args) {
  for (std::int64_t i = 0; i < args.y.size(0); ++i)
    for (std::int64_t k = 0; k < args.y.size(1); ++k) {
      const double x = at(args.x, {i, k}), least = at(args.least, {k}), most = at(args.most, {k});
      put(args.y, {i, k}, x < least ? least : x > most ? most : x);
    }
}

void softmax(Stream&, const SoftmaxArgs& args) {
  const std::int64_t dim = args.x.size(1);
  for (std::int64_t i = 0; i < args.y.size(0); ++i) {
    double most = at(args.x, {i, 0}), sum = 0;
    for (std::int64_t k = 1; k < dim; ++k) most = std::max<double>(most, at(args.x, {i, k}));
    for (std::int64_t k = 0; k < dim; ++k) sum += std::exp(at(args.x, {i, k}) - most);
    for (std::int64_t k = 0; k < args.y.size(1); ++k)
      put(args.y, {i, k}, k < dim ? std::exp(at(args.x, {i, k}) - most) / sum : 0);
  }
}

void gate(Stream&, const GateArgs& args) {
  const std::int64_t columns = args.y.size(1);
  const View& weight = args.norm.weight;
  const std::int64_t dim = args.norm.kind == NormKind::none ? columns : weight.size(weight.rank - 1);
  std::vector<double> head(static_cast<std::size_t>(dim));
  for (std::int64_t i = 0; i < args.y.size(0); ++i)
    for (std::int64_t begin = 0; begin < columns; begin += dim) {
      const auto open = [&](std::int64_t k) {
        return activation(args.activation, at(args.gate, {i, begin + k}) * args.gate_scale);
      };
      for (std::int64_t k = 0; k < dim; ++k)
        head[static_cast<std::size_t>(k)] = at(args.x, {i, begin + k}) * (args.gate_first ? open(k) : 1);
      normalize(args.norm, head, weight.rank == 2 ? begin : 0);
      for (std::int64_t k = 0; k < dim; ++k)
        put(args.y, {i, begin + k}, head[static_cast<std::size_t>(k)] * (args.gate_first ? 1 : open(k)));
    }
}

void gather_rows(Stream&, const GatherRowsArgs& args) {
  check_indices("row", args.rows, args.x.size(0));
  for (std::int64_t i = 0; i < args.out.size(0); ++i)
    for (std::int64_t k = 0; k < args.out.size(1); ++k)
      put(args.out, {i, k}, at(args.x, {args.rows.as<std::int32_t>()[i], k}));
}

void pool(Stream&, const PoolArgs& args) {
  const auto* starts = args.starts.as<std::int32_t>();
  check_segments("rows of a sequence", args.starts, args.x.size(0));
  for (std::int64_t s = 0; s < args.out.size(0); ++s)
    for (std::int64_t k = 0; k < args.out.size(1); ++k) {
      const std::int64_t first = args.pool == Pool::last ? starts[s + 1] - 1 : starts[s];
      const std::int64_t past = args.pool == Pool::first ? first + 1 : starts[s + 1];
      const auto count = static_cast<double>(past - first);
      double sum = 0, most = -std::numeric_limits<double>::infinity();
      for (std::int64_t i = first; i < past; ++i) {
        const double x = at(args.x, {i, k});
        if (x > most || std::isnan(x)) most = x;
        sum += args.pool == Pool::weighted ? static_cast<double>(i - first + 1) * x : x;
      }
      if (args.pool == Pool::max) sum = most;
      if (args.pool == Pool::sum_by_root) sum /= std::sqrt(count);
      if (args.pool == Pool::weighted) sum /= count * (count + 1) / 2;
      if (args.pool == Pool::mean) sum /= count;
      put(args.out, {s, k}, sum);
    }
}

void add_rows(Stream&, const AddRowsArgs& args) {
  check_indices("row", args.rows, args.y.size(0));
  for (std::int64_t p = 0; p < args.x.size(0); ++p) {
    if (!args.adds(p)) continue;
    const std::int64_t row = args.rows.as<std::int32_t>()[p];
    for (std::int64_t k = 0; k < args.y.size(1); ++k)
      put(args.y, {row, k}, at(args.y, {row, k}) + at(args.x, {p, k}));
  }
}

// Angles are computed in single precision, as in training, because at large positions the rounding changes
// them.
void angles(Stream&, const AnglesArgs& args) {
  for (std::int64_t i = 0; i < args.cos.size(0); ++i)
    for (std::int64_t pair = 0; pair < args.cos.size(1); ++pair) {
      const float angle =
          static_cast<float>(args.positions.as<std::int32_t>()[i]) * args.frequencies.as<float>()[pair];
      args.cos.row<float>(i)[pair] = std::cos(angle) * args.scale;
      args.sin.row<float>(i)[pair] = std::sin(angle) * args.scale;
    }
}

void put_sampled(Stream&, const PutSampledArgs& args) {
  check_indices("token", args.tokens, args.ids.size(0));
  check_indices("row", args.rows, args.sampled.size(0));
  for (std::int64_t i = 0; i < args.tokens.size(0); ++i)
    args.ids.as<std::int32_t>()[args.tokens.as<std::int32_t>()[i]] =
        std::max(args.sampled.as<std::int32_t>()[args.rows.as<std::int32_t>()[i]], 0);
}

void scale_logits(Stream&, const ScaleLogitsArgs& args) {
  const double cap = args.soft_cap;
  for (std::int64_t i = 0; i < args.logits.size(0); ++i)
    for (std::int64_t k = 0; k < args.logits.size(1); ++k) {
      const double x = at(args.logits, {i, k}) * args.scale;
      put(args.logits, {i, k}, cap > 0 ? cap * std::tanh(x / cap) : x);
    }
}

}  // namespace octavo::reference
