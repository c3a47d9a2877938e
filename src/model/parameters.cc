#include "model/parameters.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace octavo {
namespace {

// Returns the elements of `order` at the indices `rows`. If `order` is empty, returns `rows`. Ranges must
// have step 1.
std::vector<RowRange> chosen(const std::vector<RowRange>& order, const std::vector<RowRange>& rows) {
  if (order.empty()) return rows;
  std::vector<RowRange> found;
  for (const RowRange& range : rows) {
    std::int64_t at = 0;
    for (const RowRange& part : order) {
      const std::int64_t begin = std::max(range.begin, at);
      const std::int64_t end = std::min(range.begin + range.count, at + part.count);
      if (begin < end)
        found.push_back(
            {part.begin < 0 ? -1 : part.begin + (begin - at) * part.step, end - begin, part.step});
      at += part.count;
    }
  }
  return found;
}

std::int64_t count_of(const std::vector<RowRange>& ranges) {
  std::int64_t count = 0;
  for (const RowRange& range : ranges) count += range.count;
  return count;
}

}  // namespace

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
  add(linear.input);
  add(linear.output);
  linears.push_back(&linear);
}

void ParameterList::add(NormParameter& norm) {
  add(norm.weight);
  add(norm.bias);
}

void ParameterList::add(BoundsParameter& bounds) {
  add(bounds.least);
  add(bounds.most);
}

void LinearParameter::scale_by(const Slot& vector) {
  weight.scales = {{vector}};
  bias.scale = vector;
}

void keep_rows(MatrixParameter& matrix, const std::vector<RowRange>& rows) {
  matrix.sharded = true;
  matrix.order = chosen(matrix.order, rows);
  matrix.rows = count_of(rows);
}

void keep_rows(VectorParameter& vector, const std::vector<RowRange>& rows) {
  std::vector<RowRange>& order = vector.row > 0 ? vector.kept_rows : vector.order;
  order = chosen(order, rows);
  vector.size = count_of(rows) * std::max<std::int64_t>(vector.row, 1);
}

void keep_rows(LinearParameter& linear, const std::vector<RowRange>& rows) {
  keep_rows(linear.weight, rows);
  if (!linear.bias.parts.empty()) keep_rows(linear.bias, rows);
}

void keep_columns(MatrixParameter& matrix, std::int64_t begin, std::int64_t count) {
  matrix.sharded = true;
  matrix.order = {{0, matrix.rows}};
  matrix.first_col = begin;
  matrix.cols = count;
}

void keep_columns(LinearParameter& linear, std::int64_t begin, std::int64_t count, bool bias) {
  keep_columns(linear.weight, begin, count);
  if (!bias) linear.bias = {};
}

void keep_columns(VectorParameter& rows, const std::vector<RowRange>& columns) {
  const std::int64_t count = rows.size / rows.row;
  rows.order = chosen(rows.order, columns);
  rows.row = count_of(columns);
  rows.size = count * rows.row;
}

std::vector<Slot> ParameterList::slots() const {
  std::vector<Slot> slots;
  const auto append = [&](const auto* p) { slots.insert(slots.end(), p->parts.begin(), p->parts.end()); };
  for (const MatrixParameter* matrix : matrices) append(matrix);
  for (const MatrixParameter* matrix : matrices)
    for (const RowScale& scale : matrix->scales)
      if (!scale.slot.name.empty()) slots.push_back(scale.slot);
  for (const VectorParameter* vector : vectors) append(vector);
  for (const VectorParameter* vector : vectors)
    if (vector->scale) slots.push_back(*vector->scale);
  return slots;
}

std::vector<SharedMatrix> take_shared(std::vector<MatrixParameter*>& matrices) {
  const auto elements = [](const MatrixParameter& m) {
    return std::tie(m.order, m.rows, m.cols, m.first_col, m.ranges_transposed, m.difference);
  };
  const auto names = [](const MatrixParameter& m) { return m.parts | std::views::transform(&Slot::name); };
  std::map<std::pair<std::string_view, std::int64_t>, std::vector<MatrixParameter*>> known;
  std::vector<SharedMatrix> shared;
  std::vector<MatrixParameter*> kept;
  for (MatrixParameter* matrix : matrices) {
    std::vector<MatrixParameter*>& same = known[{matrix->parts[0].name, matrix->slice}];
    const auto first = std::ranges::find_if(same, [&](const MatrixParameter* other) {
      return elements(*other) == elements(*matrix) && std::ranges::equal(names(*other), names(*matrix));
    });
    if (first != same.end()) {
      shared.push_back({matrix, *first});
      continue;
    }
    same.push_back(matrix);
    kept.push_back(matrix);
  }
  matrices = std::move(kept);
  return shared;
}

namespace {

constexpr std::string_view kBounded = ".linear";

// Returns a limit of the matrix x.linear: the tensor named x + `name`.
VectorParameter bound(const std::string& matrix, const char* name, std::int64_t size) {
  VectorParameter p;
  p.parts = {{matrix + name, {}}};
  p.repeated = true;
  p.size = size;
  return p;
}

}  // namespace

std::string Namer::full(const std::string& name) const {
  std::string found = prefix_ + name;
  if (const std::size_t at = found.find('#'); at != found.npos) found.replace(at, 1, part_);
  return found;
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
    p.weight.parts.push_back({full(tensors[i]) + ".weight", std::move(shape)});
    biases.push_back(tensors[i] + ".bias");
  }
  if (bias) p.bias = vector(biases, rows);
  if (!names.bounded || tensors.size() > 1) return p;
  std::string matrix = full(tensors[0]);
  // In GGUF files, the names of the layers' matrices lack ".linear".
  const bool of_layer = names.gguf && matrix.starts_with(names.layers);
  if (!of_layer && !matrix.ends_with(kBounded)) return p;
  if (!of_layer) matrix.resize(matrix.size() - kBounded.size());
  p.input = {bound(matrix, ".input_min", cols), bound(matrix, ".input_max", cols)};
  p.output = {bound(matrix, ".output_min", rows[0]), bound(matrix, ".output_max", rows[0])};
  return p;
}

std::vector<MatrixParameter> Namer::experts(const std::vector<std::string>& tensors, std::int64_t count,
                                            std::int64_t rows, std::int64_t cols, bool down) const {
  const bool flat = names.of<Experts>().storage == ExpertStorage::flat;
  const std::vector<std::int64_t> part_rows(tensors.size(), rows / std::ssize(tensors));
  std::vector<MatrixParameter> experts;
  for (std::int64_t e = 0; e < count; ++e) {
    if (names.of<Experts>().storage == ExpertStorage::each) {
      std::vector<std::string> own;
      for (const std::string& tensor : tensors) own.push_back(fmt::format(fmt::runtime(tensor), e));
      experts.push_back(linear(own, part_rows, cols, false).weight);
      continue;
    }
    MatrixParameter p;
    p.transposed = names.of<Experts>().storage == ExpertStorage::stacked_transposed || (flat && down);
    p.slice = e;
    if (flat) p.slices = count;
    p.rows = rows;
    p.cols = cols;
    for (const std::string& tensor : tensors) {
      std::vector<std::int64_t> shape{count, part_rows[0], cols};
      if (p.transposed) std::swap(shape[1], shape[2]);
      if (flat) shape = {count * shape[1], shape[2]};
      p.parts.push_back({full(tensor), std::move(shape)});
    }
    experts.push_back(std::move(p));
  }
  return experts;
}

MatrixParameter Namer::stack(const std::string& tensor, std::int64_t count, std::int64_t rows,
                             std::int64_t cols) const {
  return {.parts = {{full(tensor) + ".weight", {count, rows, cols}}},
          .order = {},
          .rows = count * rows,
          .cols = cols,
          .weight = {}};
}

VectorParameter Namer::rows_of_vectors(const std::vector<std::string>& tensors, std::int64_t rows,
                                       std::int64_t row) const {
  VectorParameter p;
  for (const std::string& tensor : tensors)
    p.parts.push_back({full(tensor), {rows, row / std::ssize(tensors)}});
  p.size = rows * row;
  p.row = row;
  return p;
}

MatrixParameter Namer::table(const std::string& name, std::int64_t rows, std::int64_t cols,
                             MatrixUse use) const {
  return {.parts = {{full(name) + ".weight", {rows, cols}}},
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
    p.parts.push_back({full(tensors[i]), {sizes[i]}});
    p.size += sizes[i];
  }
  return p;
}

}  // namespace octavo
