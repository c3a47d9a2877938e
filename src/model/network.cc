#include "model/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/load_matrix.h"

namespace octavo {
namespace {

// What the router reads is divided by the width of the network.
StreamMixer stream_mixer(const ModelSpec& model, const Namer& name) {
  const auto tensor = [&](const char* usual, const char* in_gguf) {
    return name.names.behind(name.names.streams, usual, in_gguf);
  };
  const std::int64_t streams = model.streams->count;
  StreamMixer mixer{
      .norm = name.norm(model.streams->norm, tensor("router_norm", "router_norm"), model.dim),
      .router = name.linear({tensor("modality_router", "router")}, {streams}, model.dim, false).weight,
      .predict = name.rows_of_vectors({tensor("prediction_coefs.weight", "predict_coef.weight")},
                                      streams * streams, streams),
      .correct =
          name.rows_of_vectors({tensor("correction_coefs.weight", "correct_coef.weight")}, streams, streams),
      .scale = {}};
  mixer.norm.weight.factors.push_back({0, model.dim, 1 / static_cast<float>(model.dim)});
  mixer.router.use = MatrixUse::router;
  if (model.streams->scales_input)
    mixer.scale = name.vector({tensor("correct_output_scale", "correct_scale.weight")}, {model.dim});
  return mixer;
}

StreamWeights stream_weights(const HyperConnections& hyper, std::int64_t dim, const Namer& name,
                             const std::string& begin, bool mixes) {
  const std::int64_t rows = mixes ? hyper.rows() : hyper.count;
  const auto tensor = [&](const std::string& part) { return begin + part + (name.names.gguf ? ".weight" : ""); };
  return {.matrix = name.rows_of_vectors({tensor("fn")}, rows, hyper.count * dim),
          .base = name.vector({tensor("base")}, {rows}),
          .scale = name.vector({tensor("scale")}, {mixes ? 3 : 1})};
}

Layer layer_of(const ModelSpec& model, const LayerSpec& spec, const Namer& name) {
  const auto block = [&](const auto& kind) { return make_block(kind, name, model.dim); };
  Layer layer;
  layer.mixer = std::visit(block, spec.mixer);
  layer.second_mixer = std::visit(block, spec.second_mixer);
  if (spec.cross) {
    layer.cross = make_block(*spec.cross, name, model.dim);
    layer.cross_norm = name.norm(spec.pre_norm, name.names.cross_norm, model.dim);
    layer.cross_post_norm = name.norm(spec.post_norm, name.names.cross_post_norm, model.dim);
  }
  layer.feed_forward = std::visit(block, spec.feed_forward);
  if (spec.shortcut) layer.shortcut = make_block(*spec.shortcut, name, model.dim);
  if (spec.blend) layer.rest = constant_vector({1 - spec.blend->share});
  const auto post_norm = [&](const NormSpec& norm, const std::string& tensor) {
    return norm.stored && tensor.empty() ? NormParameter{} : name.norm(norm, tensor, model.dim);
  };
  if (layer.mixer) {
    if (spec.mixer_normed && !name.names.attention_norm.empty())
      layer.mixer_norm = name.norm(spec.pre_norm, name.names.attention_norm, model.dim);
    layer.mixer_post_norm = post_norm(spec.post_norm, name.names.attention_post_norm);
  }
  if (layer.feed_forward) {
    if (spec.residual != Residual::parallel_shared)
      layer.feed_forward_norm = name.norm(spec.pre_norm, name.names.mlp_norm, model.dim);
    NormSpec last = spec.post_norm;
    last.weight_offset = spec.last_offset.value_or(last.weight_offset);
    layer.feed_forward_post_norm = post_norm(last, name.names.mlp_post_norm);
  }
  if (model.layer_inputs) {
    layer.input = make_block(*model.layer_inputs, name, model.dim);
    layer.input_post_norm = name.norm(spec.post_norm, name.names.layer_input_post_norm, model.dim);
  }
  if (spec.mixed_scale != 1) layer.mixed_scale = constant_vector({spec.mixed_scale});
  if (spec.passed_scale != 1) layer.passed_scale = constant_vector({spec.passed_scale});
  if (spec.scaled) layer.passed_scale = name.vector({name.names.layer_scale}, {1});
  if (model.streams) layer.streams = stream_mixer(model, name);
  if (model.hyper) {
    layer.mixer_streams = stream_weights(*model.hyper, model.dim, name, name.names.mixer_streams, true);
    layer.feed_forward_streams = stream_weights(*model.hyper, model.dim, name, name.names.feed_forward_streams, true);
  }
  return layer;
}

void add_hidden_input(const ModelSpec& spec, const Namer& top, Network& network) {
  const Names& names = top.names;
  const HiddenInput& input = *spec.hidden;
  if (input.own_embedding)
    network.embedding = top.table(names.embedding, input.vocab, spec.dim, MatrixUse::table);
  network.token_norm = top.norm(input.token_norm, names.token_norm, spec.dim);
  network.hidden_norm = top.norm(input.hidden_norm, names.hidden_norm, input.joined ? input.dim : spec.dim);
  const std::int64_t row = input.row();
  network.joint =
      top.linear({names.joint}, {spec.dim}, input.joined ? spec.dim + row : row, input.joint_bias);
}

std::vector<HeadParameter> head_of(const ModelSpec& spec, const Head& of) {
  const Names plain;  // heads are stored [outputs, inputs], whatever the layers are
  const Namer name(plain, "");
  std::vector<HeadParameter> head;
  std::int64_t inputs = spec.dim;
  for (const HeadLayer& layer : of.layers) {
    const int stored = layer.rows.empty() ? layer.outputs : layer.table > 0 ? layer.table : spec.vocab;
    head.push_back({.linear = name.linear({layer.name}, {stored}, inputs, layer.bias),
                    .norm = name.norm(layer.norm, layer.norm_name, layer.outputs)});
    if (!layer.rows.empty()) {
      std::vector<RowRange> rows;
      for (const int row : layer.rows) rows.push_back({row, 1});
      MatrixParameter& weight = head.back().linear.weight;
      keep_rows(weight, rows);
      weight.difference = layer.difference;
      weight.rows = layer.outputs;
      weight.use = MatrixUse::plain;
    }
    inputs = layer.outputs;
  }
  return head;
}

// Projectors' names come without a prefix.
ProjectorParameter projector_of(const ModelSpec& spec, const Projector& projector,
                                const std::vector<std::string>& matrices, const std::string& norm) {
  const Namer name(spec.names, "");
  std::int64_t inputs = projector.mean ? spec.dim : std::int64_t{spec.dim} * spec.joined();
  ProjectorParameter parameter{.norm = name.norm(projector.norm, norm, inputs), .merger = {}, .matrices = {}};
  if (projector.merged) {
    parameter.merger = name.linear({spec.names.projector_merger}, {spec.dim}, inputs, false);
    parameter.merger.weight.channels = spec.dim;
    inputs = spec.dim;
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const int outputs = i + 1 < matrices.size() ? projector.hidden : spec.out_dim();
    LinearParameter& linear = parameter.matrices.emplace_back();
    linear = name.linear({matrices[i]}, {outputs}, inputs, projector.bias);
    if (projector.transposed) linear.weight.parts[0] = {matrices[i], {inputs, outputs}};
    linear.weight.transposed = projector.transposed;
    inputs = outputs;
  }
  return parameter;
}

void add_projector(const ModelSpec& spec, Network& network) {
  network.projector = projector_of(spec, spec.projector(), spec.names.projector, spec.names.projector_norm);
}

void add_deep_projectors(const ModelSpec& spec, Network& network) {
  const ImageInput& image = *spec.image;
  const Names& names = spec.names;
  for (std::size_t i = 0; i < image.deep_layers.size(); ++i) {
    const auto numbered = [i](const std::string& name) { return fmt::format(fmt::runtime(name), i); };
    std::vector<std::string> matrices;
    for (const std::string& name : names.deep_projectors) matrices.push_back(numbered(name));
    network.deep_projectors.push_back(
        projector_of(spec, image.deep_projector, matrices, numbered(names.deep_projector_norms)));
  }
}

// A table stored as the only one of a stack.
void take_from_stack(MatrixParameter& table, const std::string& name) {
  table.parts[0] = {name, {1, table.rows, table.cols}};
  table.slice = 0;
}

void add_image_input(const ModelSpec& spec, const Namer& top, const std::string& prefix, Network& network) {
  const ImageInput& image = *spec.image;
  network.patches = top.linear({top.names.patches}, {spec.dim}, image.patch_values(), image.bias);
  std::vector<std::int64_t>& shape = network.patches.weight.parts[0].shape;
  shape = {spec.dim, 3, image.patch_size, image.patch_size};
  if (image.frames > 0) shape.insert(shape.begin() + 2, image.frames);
  if (image.channels_last) {
    shape = {spec.dim, image.patch_values()};
    network.patches.weight.channels = image.patch_values() / 3;
  }
  if (image.class_token) {
    network.class_token = top.table(top.names.class_token, 1, spec.dim, MatrixUse::plain);
    network.class_token.parts[0] = {prefix + top.names.class_token, {spec.dim}};
  }
  if (image.tiled) {
    const Namer whole(top.names, "");
    network.newline = whole.vector({top.names.newline}, {image.whole_last ? spec.dim : image.out_dim});
    if (image.whole_last) {
      network.newline.parts[0].shape = {1, 1, 1, spec.dim};
      network.separator = whole.vector({top.names.separator}, {spec.dim});
      network.separator.parts[0].shape = {1, 1, spec.dim};
    }
  }
  if (image.axis_positions > 0)
    network.positions.parts[0] = {prefix + top.names.positions, {2, image.axis_positions, spec.dim}};
  if (top.names.stacked_tables) {
    take_from_stack(network.positions, prefix + top.names.positions);
    if (image.class_token) take_from_stack(network.class_token, prefix + top.names.class_token);
  }
  add_projector(spec, network);
  add_deep_projectors(spec, network);
}

}  // namespace

std::vector<Block*> Layer::blocks() const {
  std::vector<Block*> there;
  if (shared) there.push_back(shared.get());
  for (Block* block :
       {mixer.get(), second_mixer.get(), cross.get(), feed_forward.get(), shortcut.get(), input.get()})
    if (block != nullptr) there.push_back(block);
  return there;
}

std::optional<CacheNeed> Layer::cache() const {
  std::optional<CacheNeed> need = shared ? shared->cache() : std::nullopt;
  for (const Block* block : {mixer.get(), second_mixer.get()})
    if (block != nullptr && !need) need = block->cache();
  return need;
}

std::int64_t Layer::mixer_state_floats() const {
  std::int64_t floats = 0;
  for (const Block* block : {mixer.get(), second_mixer.get()})
    if (block != nullptr) floats += block->state_floats();
  return floats;
}

ParameterList Network::parameters() {
  ParameterList list;
  list.add(patches);
  list.add(class_token);
  list.add(newline);
  list.add(separator);
  for (LinearParameter& convolution : convolutions) list.add(convolution);
  list.add(embedding);
  list.add(positions);
  list.add(token_types);
  list.add(embedding_norm);
  list.add(token_norm);
  list.add(hidden_norm);
  list.add(joint);
  list.add(input_table);
  list.add(input_projection);
  list.add(input_norm);
  for (LinearParameter& linear : stream_in) list.add(linear);
  const auto add_streams = [&list](StreamWeights& weights) {
    list.add(weights.matrix);
    list.add(weights.base);
    list.add(weights.scale);
  };
  for (Layer& layer : layers) {
    if (layer.shared) layer.shared->list(list);
    list.add(layer.mixer_norm);
    if (layer.mixer) layer.mixer->list(list);
    if (layer.second_mixer) layer.second_mixer->list(list);
    list.add(layer.mixer_post_norm);
    list.add(layer.cross_norm);
    if (layer.cross) layer.cross->list(list);
    list.add(layer.cross_post_norm);
    list.add(layer.feed_forward_norm);
    if (layer.feed_forward) layer.feed_forward->list(list);
    list.add(layer.feed_forward_post_norm);
    if (layer.shortcut) layer.shortcut->list(list);
    list.add(layer.rest);
    if (layer.input) layer.input->list(list);
    list.add(layer.input_post_norm);
    list.add(layer.mixed_scale);
    list.add(layer.passed_scale);
    list.add(layer.streams.norm);
    list.add(layer.streams.router);
    list.add(layer.streams.predict);
    list.add(layer.streams.correct);
    list.add(layer.streams.scale);
    add_streams(layer.mixer_streams);
    add_streams(layer.feed_forward_streams);
  }
  add_streams(output_streams);
  for (LinearParameter& linear : stream_out) list.add(linear);
  list.add(final_norm);
  for (std::vector<HeadParameter>& head : heads)
    for (HeadParameter& layer : head) {
      list.add(layer.linear);
      list.add(layer.norm);
    }
  const auto add = [&list](ProjectorParameter& of) {
    list.add(of.norm);
    list.add(of.merger);
    for (LinearParameter& linear : of.matrices) list.add(linear);
  };
  add(projector);
  for (ProjectorParameter& deep : deep_projectors) add(deep);
  list.add(lm_head);
  list.add(logits_bias);
  return list;
}

namespace {

// Of each id the row of its vector: the first one's has an id that has none, and what stands for an image.
std::vector<RowRange> layer_input_rows(const ModelSpec& spec) {
  const int own = spec.layer_inputs->vocab, media = spec.tower ? spec.media_token : -1;
  std::vector<RowRange> rows;
  int next = 0;
  if (media >= 0 && media < own) {
    rows = {{0, media}, {0, 1}};
    next = media + 1;
  }
  if (rows.empty() && own == spec.vocab) return rows;
  rows.push_back({next, own - next});
  rows.resize(rows.size() + static_cast<std::size_t>(spec.vocab - own), {0, 1});
  return rows;
}

// (x * root of dim - bias) * scale, divided by that root: the next norm makes up for it.
NormParameter standard_norm(const ModelSpec& spec, const Namer& top) {
  NormParameter norm{.spec = spec.final_norm,
                     .weight = top.vector({spec.names.standard_scale}, {spec.dim}),
                     .bias = top.vector({spec.names.standard_bias}, {spec.dim})};
  norm.bias.scale = norm.weight.parts[0];
  norm.bias.factors = {{0, spec.dim, -1 / std::sqrt(static_cast<float>(spec.dim))}};
  return norm;
}

// Numbers products as adapters know them: as in the whole network, whatever stage this is of.
void number_products(const ModelSpec& spec, const std::string& prefix, Network& network) {
  const ParameterList own = network.parameters();
  std::size_t linear = kFirstLinearIndex, expert = kFirstLinearIndex + own.linears.size();
  if (spec.stage.count > 1) {
    ModelSpec all = spec;
    all.stage = {};
    Network whole = network_of(all, prefix);
    expert = kFirstLinearIndex + whole.parameters().linears.size();
    ParameterList before;
    for (std::size_t i = 0; i < spec.first_layer(); ++i)
      for (Block* block : whole.layers[i].blocks()) block->list(before);
    linear += before.linears.size();
    for (const ParameterList::ExpertProduct& product : before.experts) expert += product.matrices->size();
  }
  for (LinearParameter* each : own.linears) each->index = linear++;
  for (const ParameterList::ExpertProduct& product : own.experts)
    for (MatrixParameter& each : *product.matrices) each.index = expert++;
}

}  // namespace

Network network_of(const ModelSpec& spec, const std::string& prefix) {
  const Names& names = spec.names;
  const Namer top(names, prefix);
  const auto split = [&](MatrixParameter table) {
    if (spec.shard.size > 1) keep_rows(table, {{spec.shard.first(spec.vocab), spec.shard.count(spec.vocab)}});
    return table;
  };
  Network network;
  network.ignorable = names.ignorable;
  const Stage& stage = spec.stage;
  if (spec.hidden) {
    add_hidden_input(spec, top, network);
  } else if (!spec.encodes_media() && (stage.is_first() || (stage.is_last() && spec.tied))) {
    network.embedding = split(top.table(names.embedding, spec.vocab, spec.dim, MatrixUse::table));
  }
  if (spec.learned_positions > 0 && stage.is_first()) {
    network.positions = top.table(names.positions, spec.learned_positions, spec.dim, MatrixUse::plain);
    if (spec.first_position > 0) {
      network.positions.rows -= spec.first_position;
      network.positions.order = {{spec.first_position, network.positions.rows}};
    }
  }
  if (spec.token_types > 0 && stage.is_first())
    network.token_types = top.table(names.token_types, spec.token_types, spec.dim, MatrixUse::plain);
  if (stage.is_first())
    network.embedding_norm = top.norm(spec.embedding_norm, names.embedding_norm, spec.dim);
  if (spec.layer_inputs) {
    const std::int64_t all = std::ssize(spec.layers) * spec.layer_inputs->size,
                       own = spec.layer_inputs->vocab;
    network.input_table = top.table(names.layer_input_table, own, all, MatrixUse::table);
    network.input_table.rows = spec.vocab;
    network.input_table.order = layer_input_rows(spec);
    network.input_projection = top.linear({names.layer_input_projection}, {all}, spec.dim, false);
    network.input_norm = top.norm(spec.layer_inputs->norm, names.layer_input_norm, spec.layer_inputs->size);
  }
  for (int i = 0; spec.streams && i + 1 < spec.streams->count; ++i) {
    // Each a tensor of its own, or one of a stack.
    const auto product = [&](const std::string& tensor) {
      LinearParameter linear =
          top.linear({fmt::format(fmt::runtime(tensor), i)}, {spec.dim}, spec.dim, false);
      if (tensor.find("{}") != tensor.npos) return linear;
      linear.weight.parts[0].shape = {spec.streams->count - 1, spec.dim, spec.dim};
      linear.weight.slice = i;
      return linear;
    };
    network.stream_in.push_back(product(names.stream_in));
    network.stream_out.push_back(product(names.stream_out));
  }
  for (std::size_t i = spec.first_layer(); i < spec.end_layer(); ++i) {
    const LayerSpec& own = spec.layers[i];
    const std::size_t number = own.number < 0 ? i : static_cast<std::size_t>(own.number);
    const std::string layer =
        names.only_layer.empty() ? fmt::format("{}{}.", names.layers, number) : names.only_layer;
    const Namer name(names, prefix + layer + own.prefix, spec.shard, own.part);
    network.layers.push_back(layer_of(spec, spec.layers[i], name));
    if (const auto& shared = spec.layers[i].shared) {
      const Namer owned(names,
                        fmt::format("{}{}{}.shared_transformer.", prefix, names.layers, shared->owner));
      const bool is_owner = std::cmp_equal(shared->owner, i);
      network.layers.back().shared = std::make_unique<SharedTransformerBlock>(
          *shared, owned, Namer(names, prefix + layer), spec.dim,
          is_owner ? nullptr : network.layers[static_cast<std::size_t>(shared->owner)].shared.get());
    }
  }
  if (spec.hyper && stage.is_last())
    network.output_streams = stream_weights(*spec.hyper, spec.dim, top, names.output_streams, false);
  if (!names.standard_scale.empty())
    network.final_norm = standard_norm(spec, top);
  else if (stage.is_last())
    network.final_norm = top.norm(spec.final_norm, names.final_norm, spec.dim);
  for (std::size_t i = 0; i < spec.heads(); ++i) network.heads.push_back(head_of(spec, spec.head_at(i)));
  if (spec.image) add_image_input(spec, top, prefix, network);
  if (spec.sound) {
    std::int64_t channels = spec.sound->mels;
    for (std::size_t i = 0; i < network.convolutions.size(); ++i) {
      network.convolutions[i] = top.linear({names.convolutions[i]}, {spec.dim}, channels * kSoundTaps, true);
      network.convolutions[i].weight.parts[0].shape = {spec.dim, channels, kSoundTaps};
      channels = spec.dim;
    }
    if (spec.sound->joined > 0) add_projector(spec, network);
  }
  const bool borrows = spec.hidden && !spec.hidden->own_output;
  if (spec.tied || spec.head || spec.encodes_media() || borrows) {
    network.ignorable.push_back(names.lm_head + ".weight");  // some writers store the shared matrix twice
  } else if (stage.is_last()) {
    network.lm_head = split(Namer(names, "").table(names.lm_head, spec.vocab, spec.dim, MatrixUse::table));
  }
  if (spec.logits_bias && stage.is_last()) {
    network.logits_bias =
        Namer(names, "").vector({names.logits_bias.empty() ? names.lm_head + ".bias" : names.logits_bias}, {spec.vocab});
    if (!names.logits_bias.empty()) network.logits_bias.parts[0].shape = {1, spec.vocab};
    if (spec.shard.size > 1) {
      const MatrixParameter& output = spec.tied ? network.embedding : network.lm_head;
      network.logits_bias.order = output.order;
      network.logits_bias.size = output.rows;
    }
  }
  number_products(spec, prefix, network);
  return network;
}

Result<Network> checked_network(const ModelSpec& spec, const Checkpoint& checkpoint) {
  if (spec.other_names) {
    ModelSpec other = spec;
    other.names = *std::exchange(other.other_names, std::nullopt);
    if (auto network = checked_network(other, checkpoint)) return network;
  }
  // The prefix under which the embedding, or what a tower has in its place, is there, else the first: the
  // error then names what is usually there.
  const auto found = std::ranges::find_if(spec.names.prefixes, [&](const std::string& prefix) {
    const std::string& first = spec.image ? spec.names.patches : spec.names.embedding;
    return checkpoint.find(prefix + first + ".weight") != nullptr;
  });
  const std::string& prefix = found != spec.names.prefixes.end() ? *found : spec.names.prefixes[0];
  ModelSpec whole = spec;  // no rank has all of a checkpoint's tensors
  whole.shard = {};
  whole.stage = {};
  if (const std::string& bias = spec.names.logits_bias; !bias.empty() && checkpoint.find(bias) == nullptr)
    whole.logits_bias = false;  // where it is not stored, it is zeros
  Network network = network_of(whole, prefix);
  TRY_VOID(check_slots(checkpoint, network.parameters().slots(), network.ignorable));
  network.plain = plain_format(network, checkpoint);
  if (spec.shard.size == 1 && spec.stage.count == 1) return network;
  Network part = network_of(spec, prefix);
  part.plain = network.plain;
  return part;
}

}  // namespace octavo
