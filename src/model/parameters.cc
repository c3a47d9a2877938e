#include "model/parameters.h"

namespace octavo {

VectorParameter constant_vector(std::vector<float> elements) {
  VectorParameter p;
  p.size = std::ssize(elements);
  p.constant = std::move(elements);
  return p;
}

void ParameterList::add(MatrixParameter& matrix) {
  if (!matrix.parts.empty()) matrices.push_back(&matrix);
}

void ParameterList::add(VectorParameter& vector) {
  if (!vector.parts.empty() || !vector.constant.empty()) vectors.push_back(&vector);
}

void ParameterList::add(LinearParameter& linear) {
  if (linear.weight.parts.empty()) return;
  add(linear.weight);
  add(linear.bias);
  linears.push_back(&linear);
}

void ParameterList::add(NormParameter& norm) {
  add(norm.weight);
  add(norm.bias);
}

void LinearParameter::scale_by(const Slot& vector) { weight.scale = bias.scale = vector; }

void keep_rows(MatrixParameter& matrix, std::vector<RowRange> rows) {
  matrix.sharded = true;
  matrix.rows = 0;
  for (const RowRange& range : rows) matrix.rows += range.count;
  matrix.order = std::move(rows);
}

void keep_rows(LinearParameter& linear, std::vector<RowRange> rows) {
  keep_rows(linear.weight, std::move(rows));
  if (linear.bias.parts.empty()) return;
  linear.bias.order = linear.weight.order;
  linear.bias.size = linear.weight.rows;
}

void keep_columns(LinearParameter& linear, std::int64_t begin, std::int64_t count, bool bias) {
  linear.weight.sharded = true;
  linear.weight.order = {{0, linear.weight.rows}};
  linear.weight.first_col = begin;
  linear.weight.cols = count;
  if (!bias) linear.bias = {};
}

std::vector<Slot> ParameterList::slots() const {
  std::vector<Slot> slots;
  const auto append = [&](const auto* p) { slots.insert(slots.end(), p->parts.begin(), p->parts.end()); };
  for (const MatrixParameter* matrix : matrices) append(matrix);
  for (const MatrixParameter* matrix : matrices)
    if (matrix->scale) slots.push_back(*matrix->scale);
  for (const VectorParameter* vector : vectors) append(vector);
  return slots;
}

NormParameter Namer::norm(const NormSpec& spec, const std::string& name, std::int64_t size) const {
  if (spec.kind == NormKind::none) return {};
  if (!spec.stored)
    return {.spec = spec,
            .weight = constant_vector(std::vector(static_cast<std::size_t>(size), 1.0F)),
            .bias = {}};
  NormParameter p{.spec = spec, .weight = vector({name + ".weight"}, {size}), .bias = {}};
  p.weight.offset = spec.weight_offset;
  if (spec.bias) p.bias = vector({name + ".bias"}, {size});
  return p;
}

LinearParameter Namer::linear(const std::vector<std::string>& tensors, const std::vector<std::int64_t>& rows,
                              std::int64_t cols, bool bias) const {
  LinearParameter p;
  p.weight.transposed = names.transposed;
  p.weight.cols = cols;
  std::vector<std::string> biases;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    p.weight.rows += rows[i];
    std::vector<std::int64_t> shape{rows[i], cols};
    if (names.transposed) std::swap(shape[0], shape[1]);
    p.weight.parts.push_back({prefix_ + tensors[i] + ".weight", std::move(shape)});
    biases.push_back(tensors[i] + ".bias");
  }
  if (bias) p.bias = vector(biases, rows);
  return p;
}

std::vector<MatrixParameter> Namer::experts(const std::vector<std::string>& tensors, std::int64_t count,
                                            std::int64_t rows, std::int64_t cols) const {
  const std::vector<std::int64_t> part_rows(tensors.size(), rows / std::ssize(tensors));
  std::vector<MatrixParameter> experts;
  for (std::int64_t e = 0; e < count; ++e) {
    if (names.expert_storage == ExpertStorage::each) {
      std::vector<std::string> own;
      for (const std::string& tensor : tensors) own.push_back(fmt::format(fmt::runtime(tensor), e));
      experts.push_back(linear(own, part_rows, cols, false).weight);
      continue;
    }
    MatrixParameter p;
    p.transposed = names.expert_storage == ExpertStorage::stacked_transposed;
    p.slice = e;
    p.rows = rows;
    p.cols = cols;
    for (const std::string& tensor : tensors) {
      std::vector<std::int64_t> shape{count, part_rows[0], cols};
      if (p.transposed) std::swap(shape[1], shape[2]);
      p.parts.push_back({prefix_ + tensor, std::move(shape)});
    }
    experts.push_back(std::move(p));
  }
  return experts;
}

VectorParameter Namer::rows_of_vectors(const std::string& tensor, std::int64_t rows, std::int64_t row) const {
  VectorParameter p;
  p.parts = {{prefix_ + tensor, {rows, row}}};
  p.size = rows * row;
  p.row = row;
  return p;
}

MatrixParameter Namer::table(const std::string& name, std::int64_t rows, std::int64_t cols,
                             MatrixUse use) const {
  return {.parts = {{prefix_ + name + ".weight", {rows, cols}}},
          .order = {},
          .rows = rows,
          .cols = cols,
          .use = use,
          .weight = {}};
}

VectorParameter Namer::vector(const std::vector<std::string>& tensors,
                              const std::vector<std::int64_t>& sizes) const {
  VectorParameter p;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    p.parts.push_back({prefix_ + tensors[i], {sizes[i]}});
    p.size += sizes[i];
  }
  return p;
}

}  // namespace octavo
