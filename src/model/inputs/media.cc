#include "model/inputs/media.h"

#include "model/inputs/tokens.h"
#include "model/residual/half.h"

namespace octavo {
namespace {

// The checkpoint stores the table as a stack with one entry.
void take_from_stack(MatrixParameter& table, const std::string& name) {
  table.parts[0] = {name, {1, table.rows, table.cols}};
  table.slice = 0;
}

}  // namespace

PatchInput::PatchInput(const ModelSpec& spec, const Namer& top, const std::string& prefix)
    : dim_(spec.dim), positions_(learned_positions(spec, top)) {
  const ImageInput& image = *spec.inputs.image;
  const Names& names = top.names;
  patches_ = top.linear({names.encoder.patches}, {spec.dim}, image.patch_values(), image.bias);
  std::vector<std::int64_t>& shape = patches_.weight.parts[0].shape;
  shape = {spec.dim, 3, image.patch_size, image.patch_size};
  if (image.frames > 0) shape.insert(shape.begin() + 2, image.frames);
  patch_norm_ = top.norm(image.grid.patch_norm, names.encoder.patch_norm, spec.dim);
  if (image.storage == PatchStorage::channels_last) {
    shape = {spec.dim, image.patch_values()};
    patches_.weight.channels = image.patch_values() / 3;
  }
  if (image.storage == PatchStorage::matrix) shape = {spec.dim, image.patch_values()};
  if (image.classes.count > 0) {
    class_token_ = top.table(names.encoder.class_token, image.classes.count, spec.dim, MatrixUse::plain);
    class_token_.parts[0] = {prefix + names.encoder.class_token, {spec.dim}};
    if (image.grid.side > 0) class_token_.parts[0].shape = {image.classes.count, spec.dim};
  }
  if (image.tiled) {
    const Namer whole(names, "");
    const std::int64_t width = image.whole_last ? image.projector_columns(spec.dim) : image.out_dim;
    newline_ = whole.vector({names.encoder.newline}, {width});
    if (image.whole_last) {
      newline_.parts[0].shape = {1, 1, 1, width};
      separator_ = whole.vector({names.encoder.separator}, {width});
      separator_.parts[0].shape = {1, 1, width};
    }
  }
  if (image.marks() > 0) {
    const std::int64_t words = image.projector.hidden;
    marks_ = Namer(names, "").table(names.projector.matrices.back(), words + kMarkRows, image.out_dim,
                                    MatrixUse::plain);
    marks_.order = {{words, image.marks()}};
    marks_.rows = image.marks();
  }
  if (image.grid.in_rows) positions_.parts[0].shape = {image.grid.side, image.grid.side, spec.dim};
  if (image.classes.last) {
    const std::int64_t patches = positions_.rows - 1;
    positions_.parts[0].name = prefix + names.embedding.positions;
    positions_.order = {{patches, 1}, {0, patches}};
  }
  if (image.axis_positions > 0)
    positions_.parts[0] = {prefix + names.embedding.positions, {2, image.axis_positions, spec.dim}};
  if (names.encoder.stacked_tables) {
    take_from_stack(positions_, prefix + names.embedding.positions);
    if (image.classes.count > 0 && image.grid.side == 0)
      take_from_stack(class_token_, prefix + names.encoder.class_token);
  }
}

void PatchInput::list(ParameterList& list) {
  list.add(patches_, class_token_, newline_, separator_, marks_, positions_, patch_norm_);
}

void PatchInput::reserve(Arena arena) const { arena.rows<HalfOutput>(arena.sums, dim_); }

void PatchInput::run(const Step& step) const {
  const bool has_positions = positions_.weight != nullptr;
  const View made = has_positions ? step.slot<HalfOutput>() : step.residual.rows();
  const auto product = [&](std::int64_t first, std::int64_t count, const View& bias) {
    step.backend.ops.matmul(*step.backend.stream, {.x = step.batch.patches.rows(first, count),
                                                   .w = *patches_.weight.weight,
                                                   .bias = bias,
                                                   .y = made.rows(first, count)});
  };
  // The patches of the class tokens consist of zeros, and no bias is added to them.
  const std::int64_t first = class_rows();
  if (first > 0) product(0, first, {});
  product(first, step.tokens() - first, patches_.bias.value);
  if (!has_positions) return;
  place(step);
  step.residual.put({.delta = made, .norm = patch_norm_.norm()});
}

// Sets the residual to the learned positions. Those of the class tokens come first.
void PatchInput::place(const Step& step) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const View& residual = step.residual.rows();
  const View positions = step.positions();
  if (step.batch.position_embeddings)
    ops.gather_rows(stream, {.x = step.batch.position_embeddings, .rows = positions, .out = residual});
  else
    ops.embed(stream, {.ids = positions, .table = *positions_.weight, .out = residual});
  if (class_rows() == 0) return;
  const View first = positions.rows(0, class_rows());
  ops.embed(stream, {.ids = first,
                     .table = *class_token_.weight,
                     .position_table = step.batch.position_embeddings ? nullptr : positions_.weight.get(),
                     .positions = first,
                     .out = residual.rows(0, class_rows())});
}

SoundInputRows::SoundInputRows(const ModelSpec& spec, const Namer& top)
    : positions_(learned_positions(spec, top)) {
  std::int64_t channels = spec.inputs.sound->mels;
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    convolutions_[i] =
        top.linear({top.names.encoder.convolutions[i]}, {spec.dim}, channels * kSoundTaps, true);
    convolutions_[i].weight.parts[0].shape = {spec.dim, channels, kSoundTaps};
    convolutions_[i].weight.channels = channels;
    channels = spec.dim;
  }
}

void SoundInputRows::list(ParameterList& list) { list.add(convolutions_, positions_); }

// Without learned positions, the residual begins at zero: all rows count as those of another rank.
void SoundInputRows::run(const Step& step) const {
  const Ops& ops = step.backend.ops;
  const View ids = step.positions(), residual = step.residual.rows();
  if (positions_.weight)
    ops.embed(*step.backend.stream, {.ids = ids, .table = *positions_.weight, .out = residual});
  else
    ops.keep_own_rows(*step.backend.stream, {.ids = ids, .rows = {}, .x = residual});
  step.residual.put({.delta = step.batch.features});
}

}  // namespace octavo
