#include "model/parameters.h"

#include <algorithm>

namespace octavo {
namespace {

// Names tensors and gives them their shapes.
class Namer {
 public:
  Namer(const Names& names, const std::string& prefix) : names_(names), prefix_(prefix) {}

  NormParameter norm(const NormSpec& spec, const std::string& name, std::int64_t size) const {
    if (spec.kind == NormKind::none) return {};
    NormParameter p{.spec = spec, .weight = vector({prefix_ + name + ".weight"}, {size}), .bias = {}};
    p.weight.offset = spec.weight_offset;
    if (spec.bias) p.bias = vector({prefix_ + name + ".bias"}, {size});
    return p;
  }

  // Norm of the queries or keys of `heads` heads.
  NormParameter head_norm(const Attention& a, const std::string& name, int heads) const {
    if (a.qk_norm != QkNorm::per_head) {
      return norm(a.qk_norm_spec, name, a.qk_norm == QkNorm::whole_row ? heads * a.head_dim : a.head_dim);
    }
    std::vector<std::string> parts;
    for (int head = 0; head < heads; ++head)
      parts.push_back(fmt::format("{}{}.{}.weight", prefix_, name, head));
    const std::vector<std::int64_t> sizes(parts.size(), a.head_dim);
    return {.spec = a.qk_norm_spec, .weight = vector(parts, sizes), .bias = {}};
  }

  // rows[i] belongs to names[i].
  LinearParameter linear(const std::vector<std::string>& names, const std::vector<std::int64_t>& rows,
                         std::int64_t cols, bool bias) const {
    LinearParameter p;
    p.weight.transposed = names_.transposed;
    p.weight.cols = cols;
    std::vector<std::string> biases;
    for (std::size_t i = 0; i < names.size(); ++i) {
      p.weight.rows += rows[i];
      std::vector<std::int64_t> shape{rows[i], cols};
      if (names_.transposed) std::swap(shape[0], shape[1]);
      p.weight.parts.push_back({prefix_ + names[i] + ".weight", std::move(shape)});
      biases.push_back(prefix_ + names[i] + ".bias");
    }
    if (bias) p.bias = vector(biases, rows);
    return p;
  }

  MatrixParameter table(const std::string& name, std::int64_t rows, std::int64_t cols) const {
    return {.parts = {{prefix_ + name + ".weight", {rows, cols}}}, .order = {}, .rows = rows, .cols = cols};
  }

 private:
  static VectorParameter vector(const std::vector<std::string>& names,
                                const std::vector<std::int64_t>& sizes) {
    VectorParameter p;
    for (std::size_t i = 0; i < names.size(); ++i) {
      p.parts.push_back({names[i], {sizes[i]}});
      p.size += sizes[i];
    }
    return p;
  }

  const Names& names_;
  std::string prefix_;
};

// Rows of each kind (query, key, value), when the checkpoint has each kind in a matrix of its own; else the
// sum.
std::vector<std::int64_t> qkv_rows(const Attention& a, std::size_t matrices) {
  if (matrices == 1) return {a.qkv_dim()};
  return {a.q_dim(), a.kv_dim(), a.kv_dim()};
}

// Rows that come head by head (q k v, q k v, ...), in the order of all queries, all keys, all values.
std::vector<RowRange> by_kind(const Attention& a) {
  std::vector<RowRange> order;
  for (std::int64_t kind = 0; kind < 3; ++kind) {
    for (std::int64_t head = 0; head < a.q_heads; ++head) {
      order.push_back({(3 * head + kind) * a.head_dim, a.head_dim});
    }
  }
  return order;
}

LayerParameters layer_parameters(const ModelSpec& spec, const LayerSpec& layer, const Namer& name) {
  const Names& names = spec.names;
  const Attention& a = layer.attention;
  const Mlp& mlp = layer.mlp;
  LayerParameters p;
  p.attention_norm = name.norm(layer.pre_norm, names.attention_norm, spec.dim);
  p.attention_post_norm = name.norm(layer.post_norm, names.attention_post_norm, spec.dim);
  if (layer.residual != Residual::parallel_shared) {
    p.mlp_norm = name.norm(layer.pre_norm, names.mlp_norm, spec.dim);
  }
  p.mlp_post_norm = name.norm(layer.post_norm, names.mlp_post_norm, spec.dim);
  if (a.qk_norm != QkNorm::none) {
    p.q_norm = name.head_norm(a, names.q_norm, a.q_heads);
    p.k_norm = name.head_norm(a, names.k_norm, a.kv_heads);
  }
  p.qkv = name.linear(names.qkv, qkv_rows(a, names.qkv.size()), spec.dim, a.qkv_bias);
  if (names.qkv_order == QkvOrder::by_head) {
    p.qkv.weight.order = by_kind(a);
    p.qkv.bias.order = p.qkv.weight.order;
  }
  p.out = name.linear({names.out}, {spec.dim}, a.q_dim(), a.out_bias);
  const std::int64_t up_rows = mlp.gated ? 2 * mlp.hidden : mlp.hidden;
  const auto up_parts = static_cast<std::int64_t>(names.up.size());
  p.up = name.linear(names.up, std::vector(names.up.size(), up_rows / up_parts), spec.dim, mlp.up_bias);
  p.down = name.linear({names.down}, {spec.dim}, mlp.hidden, mlp.down_bias);
  return p;
}

}  // namespace

Parameters parameters_of(const ModelSpec& spec, const std::string& prefix) {
  const Names& names = spec.names;
  const Namer top(names, prefix);
  Parameters p;
  p.ignorable = names.ignorable;
  p.embedding = top.table(names.embedding, spec.vocab, spec.dim);
  if (spec.learned_positions > 0) p.positions = top.table(names.positions, spec.learned_positions, spec.dim);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const Namer layer(names, fmt::format("{}{}{}.", prefix, names.layers, i));
    p.layers.push_back(layer_parameters(spec, spec.layers[i], layer));
  }
  p.final_norm = top.norm(spec.final_norm, names.final_norm, spec.dim);
  if (spec.tied) {
    p.ignorable.push_back(names.lm_head + ".weight");  // some writers store the shared matrix twice
  } else {
    p.lm_head = Namer(names, "").table(names.lm_head, spec.vocab, spec.dim);
  }
  return p;
}

Result<Parameters> checked_parameters(const ModelSpec& spec, const Checkpoint& checkpoint) {
  // The prefix under which the embedding is there, else the first: the error then names what is usually
  // there.
  const auto found = std::ranges::find_if(spec.names.prefixes, [&](const std::string& prefix) {
    return checkpoint.find(prefix + spec.names.embedding + ".weight") != nullptr;
  });
  Parameters parameters =
      parameters_of(spec, found != spec.names.prefixes.end() ? *found : spec.names.prefixes[0]);
  std::vector<Slot> slots;
  for_each_parameter(parameters,
                     [&](const auto& p) { slots.insert(slots.end(), p.parts.begin(), p.parts.end()); });
  TRY_VOID(check_slots(checkpoint, slots, parameters.ignorable));
  return parameters;
}

}  // namespace octavo
