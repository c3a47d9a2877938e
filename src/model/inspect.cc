#include "model/inspect.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <set>

#include "model/cache_layout.h"
#include "model/decoder.h"
#include "model/load_matrix.h"
#include "model/model.h"
#include "model/parameters.h"
#include "weights/checkpoint.h"

namespace octavo {
namespace {

constexpr double kMiB = 1 << 20;

std::string_view name(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::relu:
      return "relu";
  }
  return "";
}

std::string_view name(RopeScalingKind kind) {
  switch (kind) {
    case RopeScalingKind::none:
      return "not stretched";
    case RopeScalingKind::linear:
      return "linear";
    case RopeScalingKind::dynamic:
      return "dynamic";
    case RopeScalingKind::llama3:
      return "llama3";
    case RopeScalingKind::yarn:
      return "yarn";
    case RopeScalingKind::longrope:
      return "longrope";
  }
  return "";
}

// One line on a layer; equal layers have equal lines.
std::string line_of(const LayerSpec& layer) {
  const Attention& a = layer.attention;
  const Mlp& mlp = layer.mlp;
  std::string text = fmt::format("{} query and {} key heads of {}", a.q_heads, a.kv_heads, a.head_dim);
  if (a.qk_norm != QkNorm::none) text += ", normed";
  if (a.window > 0) text += fmt::format(", window {}", a.window);
  if (a.soft_cap > 0) text += fmt::format(", scores capped at {}", a.soft_cap);
  text += fmt::format("; MLP {} {}{}", mlp.hidden, mlp.gated ? "gated " : "", name(mlp.activation));
  text += layer.pre_norm.kind == NormKind::none    ? "; post-norm"
          : layer.post_norm.kind == NormKind::none ? "; pre-norm"
                                                   : "; sandwich norm";
  if (layer.residual != Residual::serial) text += ", parallel";
  return text;
}

std::string layers_text(const ModelSpec& spec) {
  std::map<std::string, int> counts;
  for (const LayerSpec& layer : spec.layers) ++counts[line_of(layer)];
  std::string text;
  for (const auto& [line, count] : counts) text += fmt::format("  layers          {} x {}\n", count, line);
  return text;
}

std::string rope_text(const RopeSpec& rope) {
  return fmt::format(
      "  rotary          {} elements of a head, theta {}, {}{}\n", rope.rotary_dim, rope.theta,
      name(rope.scaling.kind),
      rope.scaling.kind == RopeScalingKind::none ? "" : fmt::format(" x {}", rope.scaling.factor));
}

// The formats of the matrices, the one with most bytes first.
std::string formats_text(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::size_t> bytes;
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (tensor.shape.size() == 2) bytes[tensor.format] += stored_bytes(tensor);
  std::vector<std::pair<std::size_t, std::string_view>> formats;
  for (const auto& [format, size] : bytes) formats.emplace_back(size, format);
  std::ranges::sort(formats, std::greater());
  return fmt::format("{}", fmt::join(formats | std::views::values, ", "));
}

// Tokens that the first `n` tokens of a sequence see in sum, themselves included.
double seen_by_first(std::int64_t n, std::int64_t window) {
  const auto triangle = [](double k) { return k * (k + 1) / 2; };
  if (window == 0 || n <= window) return triangle(static_cast<double>(n));
  return triangle(static_cast<double>(window)) + static_cast<double>((n - window) * window);
}

std::string cost_line(std::string_view what, const PassCost& cost, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  return fmt::format("  {:<32}{:>10.1f} MB {:>10.2f} GFLOP a token {:>8.1f} FLOP/byte\n", what,
                     cost.bytes / n / 1e6, cost.operations / n / 1e9, cost.operations / cost.bytes);
}

std::string roofline_text(const ModelSpec& spec, double weight_bytes, DType cache) {
  const auto cost = [&](std::int64_t tokens, std::int64_t context) {
    return pass_cost(spec, tokens, context, weight_bytes, size_of(cache));
  };
  std::string text = "roofline (least traffic and work)\n";
  const std::int64_t longest = spec.max_positions;
  for (const std::int64_t context :
       std::set{std::int64_t{1}, std::min<std::int64_t>(4096, longest), longest}) {
    text += cost_line(fmt::format("decode at context {}", context), cost(1, context), 1);
  }
  for (const std::int64_t tokens :
       std::set{std::min<std::int64_t>(512, longest), std::min<std::int64_t>(4096, longest)}) {
    text += cost_line(fmt::format("prefill of {}", tokens), cost(tokens, tokens), tokens);
  }
  return text;
}

std::string cache_text(const ModelSpec& spec, const Ops& ops, DType dtype) {
  const CacheLayout layout = cache_layout(spec, {.dtype = dtype});
  std::string text = fmt::format("KV cache ({})\n  per token       {:.1f} KiB in a long sequence\n",
                                 name(dtype), layout.bytes_per_token(ops) / 1024);
  text += fmt::format("  block           {} tokens, {} layers, {:.1f} KiB\n", layout.kv.block_size,
                      layout.planes, static_cast<double>(layout.block_bytes(ops)) / 1024);
  const auto windows = std::ranges::count_if(layout.groups, [](const LayerGroup& g) { return g.window > 0; });
  return text + fmt::format("  groups          {} full, {} with a window\n",
                            std::ssize(layout.groups) - windows, windows);
}

// Bytes of the cache that one sequence of the greatest length holds.
double longest_sequence_bytes(const ModelSpec& spec, const CacheLayout& layout, const Ops& ops) {
  double bytes = 0;
  for (const LayerGroup& group : layout.groups) {
    const int tokens = group.window > 0 ? std::min(group.window, spec.max_positions) : spec.max_positions;
    bytes += static_cast<double>((tokens + layout.kv.block_size - 1) / layout.kv.block_size) *
             static_cast<double>(layout.block_bytes(ops));
  }
  return bytes;
}

std::string memory_text(const ModelSpec& spec, const Ops& ops, std::size_t weight_bytes, DType activation) {
  constexpr DecoderLimits kLimits{.max_tokens = 2048, .max_logit_rows = 256};
  std::int64_t angles = 0;
  for (const RopeSpec& rope : spec.ropes) angles += std::int64_t{spec.max_positions} * rope.rotary_dim;
  const auto line = [](std::string_view what, double bytes) {
    return fmt::format("  {:<16}{:.1f} MiB\n", what, bytes / kMiB);
  };
  std::string text = fmt::format("memory plan ({} tokens a step, a sequence of {})\n", kLimits.max_tokens,
                                 spec.max_positions);
  text += line("weights", static_cast<double>(weight_bytes));
  text += line("rotary tables", 4.0 * static_cast<double>(angles));
  text += line("workspaces", static_cast<double>(workspace_bytes(spec, activation, kLimits)));
  return text +
         line("KV cache", longest_sequence_bytes(spec, cache_layout(spec, {.dtype = activation}), ops));
}

}  // namespace

ParameterCount count_parameters(const ModelSpec& spec) {
  const Parameters parameters = parameters_of(spec, spec.names.prefixes[0]);
  ParameterCount count;
  for_each_parameter(parameters, [&](const auto& p) {
    if constexpr (requires { p.rows; }) {
      count.total += p.parts.empty() ? 0 : p.rows * p.cols;
    } else {
      count.total += p.size;
    }
  });
  for (const LayerParameters& layer : parameters.layers) {
    for (const LinearParameter* linear : {&layer.qkv, &layer.out, &layer.up, &layer.down}) {
      count.matrices += linear->weight.rows * linear->weight.cols;
    }
  }
  count.matrices += std::int64_t{spec.vocab} * spec.dim;
  return count;
}

PassCost pass_cost(const ModelSpec& spec, std::int64_t tokens, std::int64_t context,
                   double weight_element_bytes, std::size_t cache_element_bytes) {
  const auto matrices = static_cast<double>(count_parameters(spec).matrices);
  const double head = static_cast<double>(spec.vocab) * spec.dim;
  PassCost cost;
  cost.bytes = matrices * weight_element_bytes;
  cost.operations = 2 * ((matrices - head) * static_cast<double>(tokens) + head);
  for (const LayerSpec& layer : spec.layers) {
    const Attention& a = layer.attention;
    const double seen = seen_by_first(context, a.window) - seen_by_first(context - tokens, a.window);
    cost.operations += 4 * seen * a.q_dim();
    const std::int64_t read = a.window > 0 ? std::min(context, a.window + tokens - 1) : context;
    cost.bytes +=
        2 * static_cast<double>(read + tokens) * a.kv_dim() * static_cast<double>(cache_element_bytes);
  }
  return cost;
}

Result<std::string> inspect(const std::string& path, const Ops& ops) {
  TRY(const ModelSpec spec, load_spec(path));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  TRY(const Parameters parameters, checked_parameters(spec, checkpoint));
  const DType activation = ops.activation(plain_format(parameters, checkpoint));
  const ParameterCount count = count_parameters(spec);

  std::string text = fmt::format("{}\n", spec.architecture);
  text += fmt::format("  width           {}\n  vocabulary      {}{}\n", spec.dim, spec.vocab,
                      spec.tied ? ", embedding and output tied" : "");
  text += layers_text(spec);
  for (const RopeSpec& rope : spec.ropes) text += rope_text(rope);
  text += fmt::format("  longest         {} tokens\n", spec.max_positions);
  text += fmt::format("parameters ({})\n  total           {:.1f} M\n  per token       {:.1f} M in matrices\n",
                      formats_text(checkpoint), static_cast<double>(count.total) / 1e6,
                      static_cast<double>(count.matrices) / 1e6);
  text += memory_text(spec, ops, checkpoint.bytes(), activation);
  text += cache_text(spec, ops, activation);
  const double bytes_each = static_cast<double>(checkpoint.bytes()) / static_cast<double>(count.total);
  return text + roofline_text(spec, bytes_each, activation);
}

}  // namespace octavo
