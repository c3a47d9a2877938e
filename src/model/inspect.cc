#include "model/inspect.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <ranges>
#include <set>

#include "model/cache_layout.h"
#include "model/decoder.h"
#include "model/load_matrix.h"
#include "model/model.h"
#include "model/support.h"
#include "weights/checkpoint.h"

namespace octavo {
namespace {

constexpr double kMiB = 1 << 20;

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
    case RopeScalingKind::proportional:
      return "proportional";
    case RopeScalingKind::ntk:
      return "ntk";
    case RopeScalingKind::longrope:
      return "longrope";
  }
  return "";
}

// Describes a layer. Equal layers have equal lines.
std::string line_of(const Layer& layer, const LayerSpec& spec) {
  std::vector<std::string> parts;
  for (const Block* block : layer.blocks()) parts.push_back(block->text());
  parts.emplace_back(spec.pre_norm.kind == NormKind::none    ? "post-norm"
                     : spec.post_norm.kind == NormKind::none ? "pre-norm"
                                                             : "sandwich norm");
  return fmt::format("{}{}", fmt::join(parts, "; "), spec.residual != Residual::serial ? ", parallel" : "");
}

std::string layers_text(const ModelSpec& spec, const Network& network) {
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) ++counts[line_of(network.layers[i], spec.layers[i])];
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

// Formats numbers with three significant digits, such as "0.0513 GFLOP" and "1.23e+03 MB".
std::string cost_line(std::string_view what, const PassCost& cost, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  return fmt::format("  {:<32}{:>10.3g} MB {:>10.3g} GFLOP/token {:>8.1f} FLOP/byte\n", what,
                     cost.bytes / n / 1e6, cost.operations / n / 1e9, cost.operations / cost.bytes);
}

std::string roofline_text(const ModelSpec& spec, double weight_bytes, DType cache) {
  const auto cost = [&](std::int64_t tokens, std::int64_t context) {
    return pass_cost(spec, tokens, context, weight_bytes, size_of(cache));
  };
  std::string text = "roofline (minimum memory traffic and work)\n";
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
  text += fmt::format("  block           {} tokens, {} layers, {:.1f} KiB\n", layout.block_size,
                      layout.planes, static_cast<double>(layout.block_bytes(ops)) / 1024);
  const auto windows = std::ranges::count_if(layout.groups, [](const LayerGroup& g) { return g.window > 0; });
  text += fmt::format("  groups          {} full, {} with a window\n", std::ssize(layout.groups) - windows,
                      windows);
  if (layout.state_floats > 0)
    text += fmt::format(
        "states (f32)\n  per sequence    {:.1f} KiB, and the same for each state in the prefix cache\n",
        static_cast<double>(layout.state_bytes()) / 1024);
  if (spec.has_cross()) {
    const CacheLayout cross = cross_layout(spec, {.dtype = dtype});
    text += fmt::format("keys and values of {} ({})\n  per sequence    {:.1f} KiB\n",
                        spec.media.tower->inputs.sound ? "sound" : "the prompt", name(dtype),
                        static_cast<double>(rows_blocks(spec, cross) * cross.block_bytes(ops)) / 1024);
  }
  return text;
}

// Bytes of KV cache that one sequence of maximum length needs.
double longest_sequence_bytes(const ModelSpec& spec, const CacheLayout& layout, const Ops& ops) {
  double bytes = 0;
  for (const LayerGroup& group : layout.groups) {
    const int tokens = group.window > 0 ? std::min(group.window, spec.max_positions) : spec.max_positions;
    bytes += static_cast<double>((tokens + layout.block_size - 1) / layout.block_size) *
             static_cast<double>(layout.block_bytes(ops));
  }
  return bytes;
}

std::string count_text(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count < 1e6 ? fmt::format("{:.1f} K", count / 1e3) : fmt::format("{:.1f} M", count / 1e6);
}

std::string memory_text(const ModelSpec& spec, const Ops& ops, std::size_t weight_bytes, DType activation) {
  constexpr DecoderLimits kLimits{.max_tokens = 2048, .max_logit_rows = 256};
  const auto line = [](std::string_view what, double bytes) {
    return bytes < kMiB ? fmt::format("  {:<16}{:.1f} KiB\n", what, bytes / 1024)
                        : fmt::format("  {:<16}{:.1f} MiB\n", what, bytes / kMiB);
  };
  std::string text = fmt::format("memory plan ({} tokens per step, one sequence of {} tokens)\n",
                                 kLimits.max_tokens, spec.max_positions);
  text += line("weights", static_cast<double>(weight_bytes));
  text += line("workspaces", static_cast<double>(workspace_bytes(spec, activation, kLimits)));
  return text +
         line("KV cache", longest_sequence_bytes(spec, cache_layout(spec, {.dtype = activation}), ops));
}

// Describes the encoder of images, audio or prompts.
Result<std::string> tower_text(const ModelSpec& tower, const Checkpoint& checkpoint) {
  TRY(const Network network, checked_network(tower, checkpoint));
  std::string text;
  if (tower.inputs.sound) {
    text = fmt::format("sound ({} mel bins, {} frames, {} rows)\n  width           {}\n",
                       tower.inputs.sound->mels, tower.inputs.sound->frames(), tower.inputs.sound->rows,
                       tower.dim);
  } else if (tower.inputs.source) {
    text = fmt::format("prompts (up to {} tokens)\n  width           {}\n", tower.inputs.source->rows,
                       tower.dim);
  } else {
    const ImageInput& image = *tower.inputs.image;
    const std::string size =
        image.image_size > 0
            ? fmt::format("{0} x {0} pixels, {1} tokens", image.image_size, image.side() * image.side())
            : fmt::format("of any size, one token per {0} x {0} pixels", image.unit());
    text = fmt::format("images ({})\n  width           {}, patches of {} x {}\n", size, tower.dim,
                       image.patch_size, image.patch_size);
  }
  text += layers_text(tower, network);
  return text + fmt::format("  total           {}\n", count_text(count_parameters(tower).total));
}

BlockCost layers_cost(const Network& network, const Pass& pass) {
  BlockCost cost;
  for (const Layer& layer : network.layers)
    for (const Block* block : layer.blocks()) cost = cost + block->cost(pass);
  return cost;
}

}  // namespace

ParameterCount count_parameters(const ModelSpec& spec) {
  Network network = network_of(spec);
  ParameterCount count;
  ParameterList list = network.parameters();
  take_shared(list.matrices);
  const auto stored = [](std::span<const Slot> parts) {
    std::int64_t sum = 0;
    for (const Slot& part : parts) {
      std::int64_t elements = 1;
      for (const std::int64_t size : part.shape) elements *= size;
      sum += elements;
    }
    return sum;
  };
  for (const MatrixParameter* matrix : list.matrices) {  // `order` may contain a row twice
    count.total += std::min(matrix->elements(), stored(matrix->parts));
    for (const RowScale& scale : matrix->scales) count.total += stored(std::vector{scale.slot});
  }
  std::set<std::string_view> names;  // of vectors, which layers that run several times share
  for (const VectorParameter* vector : list.vectors)
    if (!vector->parts.empty() && names.insert(vector->parts[0].name).second)
      count.total += stored(vector->parts);
  count.active = std::int64_t{spec.vocab} * spec.dim +
                 std::llround(layers_cost(network, {.tokens = 1, .context = 1}).weights);
  return count;
}

PassCost pass_cost(const ModelSpec& spec, std::int64_t tokens, std::int64_t context,
                   double weight_element_bytes, std::size_t cache_element_bytes) {
  const BlockCost layers = layers_cost(network_of(spec), {tokens, context});
  const double head = static_cast<double>(spec.vocab) * spec.dim;
  return {.bytes = (layers.weights + head) * weight_element_bytes +
                   layers.cached * static_cast<double>(cache_element_bytes) +
                   layers.state * static_cast<double>(sizeof(float)),
          .operations = layers.operations + 2 * head};
}

std::string formats_text(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::size_t> bytes;
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (tensor.shape.size() > 1) bytes[tensor.format] += stored_bytes(tensor);
  std::vector<std::pair<std::size_t, std::string_view>> formats;
  for (const auto& [format, size] : bytes) formats.emplace_back(size, format);
  std::ranges::sort(formats, std::greater());
  return fmt::format("{}", fmt::join(formats | std::views::values, ", "));
}

Result<std::string> inspect(const std::string& path, const Backend& backend) {
  const Ops& ops = backend.ops;
  TRY(const ModelSpec spec, load_spec(path));
  TRY(const Checkpoint checkpoint, open_checkpoint(path));
  TRY(Network network, checked_network(spec, checkpoint));
  const DType activation = ops.activation(plain_format(network, checkpoint));
  TRY_VOID(check_support(spec, {.dtype = activation}, backend));
  const ParameterCount count = count_parameters(spec);

  std::string text = fmt::format("{}\n", spec.architecture);
  text += fmt::format("  width           {}\n  vocabulary      {}{}\n", spec.dim, spec.vocab,
                      spec.logits.tied ? ", embedding and output tied" : "");
  text += layers_text(spec, network);
  for (const RopeSpec& rope : spec.ropes) text += rope_text(rope);
  text += fmt::format("  longest         {} tokens\n", spec.max_positions);
  if (spec.media.tower) {
    TRY(const std::string tower, tower_text(*spec.media.tower, checkpoint));
    text += tower;
  }
  text += fmt::format("parameters ({})\n  total           {}\n  active          {}, in matrices\n",
                      formats_text(checkpoint), count_text(count.total), count_text(count.active));
  text += memory_text(spec, ops, checkpoint.bytes(), activation);
  text += cache_text(spec, ops, activation);
  const double bytes_each = static_cast<double>(checkpoint.bytes()) / static_cast<double>(count.total);
  return text + roofline_text(spec, bytes_each, activation);
}

}  // namespace octavo
