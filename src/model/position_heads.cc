#include "model/position_heads.h"

#include "model/drafter.h"
#include "weights/slots.h"

namespace octavo {

ParameterList PositionParameters::list() {
  ParameterList list;
  list.add(input_norm);
  for (MatrixParameter& table : tables) list.add(table);
  for (LinearParameter& linear : products) list.add(linear);
  for (NormParameter& norm : norms) list.add(norm);
  for (MatrixParameter& output : outputs) list.add(output);
  return list;
}

Result<View> PositionHeads::allocate(DType type, std::int64_t rows, std::int64_t cols) {
  Buffer& buffer = workspaces_.emplace_back();
  TRY(buffer, backend_.device->allocate(static_cast<std::size_t>(rows * cols) * size_of(type)));
  return buffer.view(type, {rows, cols});
}

void PositionHeads::copy_hidden(std::int64_t n, const View& out) const {
  backend_.ops.gather_rows(*backend_.stream, {.x = residual_, .rows = rows_.rows(0, n), .out = out});
  if (const Norm norm = other().network.ends->final_norm.norm(); norm.kind != NormKind::none)
    backend_.ops.add_norm(*backend_.stream, {.residual = out, .norm = norm, .replace = true});
}

Result<std::unique_ptr<LoadedPositionHeads>> load_position_parameters(
    ModelSpec spec, PositionParameters parameters, const std::vector<std::string>& ignorable,
    const Checkpoint& checkpoint, const Model& other, Backend& backend, const LoadOptions& options) {
  auto loaded = std::make_unique<LoadedPositionHeads>();
  loaded->parameters = std::move(parameters);
  loaded->other = &other;
  Model& model = loaded->model;
  model.spec = std::move(spec);
  model.max_model_len = other.max_model_len;
  const ParameterList list = loaded->parameters.list();
  TRY_VOID(check_slots(checkpoint, list.slots(), ignorable));
  if (const StoredTensor& first = *checkpoint.find(list.matrices[0]->parts[0].name); first.plain())
    model.network.plain = *first.dtype;
  TRY_VOID(load_beside(other, checkpoint, backend, options, list, model));
  return loaded;
}

}  // namespace octavo
