// Parameters of a network: matrices and vectors. Each has the names of its tensors in the checkpoint and,
// after loading, its values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "model/spec.h"
#include "weights/slots.h"

namespace octavo {

// Rows begin, begin + step, .. of a matrix, or elements of a vector. If begin is -1, all numbers of the rows
// are 0.
struct RowRange {
  std::int64_t begin;
  std::int64_t count;
  std::int64_t step = 1;

  bool operator==(const RowRange&) const = default;
};

// Decides how LoadOptions::quantization applies to a plain matrix.
enum class MatrixUse : std::uint8_t {
  layer,   // quantised as requested
  table,   // embedding and output matrix: becomes int8
  plain,   // not quantised; a matrix that is quantised in the checkpoint becomes plain
  router,  // not quantised; plain_format() ignores the matrix
};

// A function of numbers in the checkpoint; empty: the numbers are used as they are stored.
using NumberChange = std::function<float(float)>;

// A vector in the checkpoint, with an element for each row of a tensor. It multiplies the rows.
struct RowScale {
  Slot slot = {};  // without a name: the rows are not multiplied
  NumberChange change = {};
};

// A matrix [rows, cols]. Its rows are the rows of the tensors `parts`, one tensor after another, or only the
// rows in `order`.
struct MatrixParameter {
  std::vector<Slot> parts;  // empty: the network has no such matrix
  std::int64_t slice = -1;  // index in a stack; -1: the tensor is not a stack
  // if not 0: the tensor is a stack of `slices` matrices whose rows follow one another, [slices * r, ..]; 0:
  // the stack has the shape [slices, r, ..]
  std::int64_t slices = 0;
  bool transposed = false;  // each tensor is stored as [cols, rows]
  bool ranges_transposed = false;  // each range of `order`, [count, cols], is transposed to [cols, count]
  // If not 0, each group of stored_run_cols columns in a tensor is padded with zeros to run_cols columns.
  std::int64_t stored_run_cols = 0, run_cols = 0;
  std::int64_t channels = 0;  // if not 0, each row is stored as [channels, cols / channels] and is transposed
  std::vector<RowScale> scales = {};  // empty, or one for each tensor
  // if not empty, the matrix has these rows in this order; each range is inside one tensor
  std::vector<RowRange> order;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool difference = false;  // the matrix has one row: the first row of `order` minus the second
  // this is a rank's part; if the part is contiguous in a plain tensor, only this part is read
  bool sharded = false;
  std::int64_t first_col = 0;  // the matrix has the columns [first_col, first_col + cols) of the tensors
  MatrixUse use = MatrixUse::layer;
  std::size_t index = 0;  // only for an expert: index of its product, by which adapters find it
  // Null before loading. Matrices of the same tensors (take_shared()) have one weight.
  std::shared_ptr<const Weight> weight;

  std::int64_t elements() const { return rows * cols; }
  // Returns whether some rows or columns are zeros that no tensor contains.
  bool padded() const {
    return run_cols > 0 || std::ranges::any_of(order, [](const RowRange& range) { return range.begin < 0; });
  }
};

// Factor for the elements [begin, begin + count) of a vector.
struct Factor {
  std::int64_t begin;
  std::int64_t count;
  float factor;
};

// A vector in f32: its tensors, one after another.
struct VectorParameter {
  std::vector<Slot> parts;      // empty: the network has no such vector, or the elements are in `constant`
  std::vector<float> constant;  // elements that are not in the checkpoint
  std::vector<RowRange> order;
  NumberChange change = {};
  float offset = 0;    // number that is added to each element
  bool rates = false;  // an element x is stored as -exp(x)
  // true: each stored number s becomes a row (s, 1 - s); `size` and `row` count elements of these rows
  bool shares = false;
  std::optional<Slot> scale = {};  // vector of the same length that multiplies this one
  std::vector<Factor> factors;
  std::int64_t size = 0;
  // if not 0, the tensors have rows of this total length: row i is the concatenation of the tensors' rows i,
  // and `order` applies within a row
  std::int64_t row = 0;
  std::vector<RowRange> kept_rows;  // if not empty, only these rows are kept
  std::int64_t below = 0;           // if not 0, the elements are integers in [0, below)
  // true: the tensor is one number, which all `size` elements have. It may be infinite.
  bool repeated = false;
  View value;  // f32 [size] or [size / row, row]; empty before loading
};
VectorParameter constant_vector(std::vector<float> elements);

// Indices of the products that LoRA adapters can change: the embedding, the output matrix, all linear
// products of the network, then the experts' products with one index per expert.
constexpr std::size_t kEmbeddingIndex = 0, kOutputIndex = 1, kFirstLinearIndex = 2;

// Smallest and largest allowed value for each column (ClampArgs).
struct BoundsParameter {
  VectorParameter least, most;
};

struct LinearParameter {
  MatrixParameter weight;
  VectorParameter bias;
  BoundsParameter input, output;  // empty: no limits
  std::size_t index = 0;          // index of the product, from kFirstLinearIndex on

  // Multiplies the outputs by a vector in the checkpoint.
  void scale_by(const Slot& vector);
};

struct NormParameter {
  NormSpec spec;
  VectorParameter weight;
  VectorParameter bias;

  Norm norm() const { return {spec.kind, spec.eps, weight.value, bias.value}; }
};

// Reduce a parameter to a rank's part. Rows are numbered as in the complete network. If columns are split,
// the ranks' products are added up, so only one rank keeps the bias.
void keep_rows(MatrixParameter& matrix, const std::vector<RowRange>& rows);
void keep_rows(VectorParameter& vector, const std::vector<RowRange>& rows);
void keep_rows(LinearParameter& linear, const std::vector<RowRange>& rows);
void keep_columns(MatrixParameter& matrix, std::int64_t begin, std::int64_t count);
void keep_columns(LinearParameter& linear, std::int64_t begin, std::int64_t count, bool bias);
// `columns` are indices within a row of VectorParameter::row elements.
void keep_columns(VectorParameter& rows, const std::vector<RowRange>& columns);

// The parameters of a network, in the order of the forward pass.
struct ParameterList {
  std::vector<MatrixParameter*> matrices;
  std::vector<VectorParameter*> vectors;
  // linear products; their matrices and vectors are also in `matrices` and `vectors`
  std::vector<LinearParameter*> linears;
  // A product of experts. Its matrices, one per expert, are also in `matrices`. A token uses `chosen` of
  // them.
  struct ExpertProduct {
    std::vector<MatrixParameter>* matrices;
    std::int64_t chosen;
  };
  std::vector<ExpertProduct> experts;

  void add(MatrixParameter& matrix);
  void add(VectorParameter& vector);
  void add(LinearParameter& linear);
  void add(NormParameter& norm);
  void add(BoundsParameter& bounds);
  // The overloads of add() add the parameters of a part of a block, of a pointer's target, of a range, or of
  // several arguments in order.
  template <class Part>
    requires requires(Part& part, ParameterList& list) { part.list(list); }
  void add(Part& part) {
    part.list(*this);
  }
  template <class Pointer>
    requires requires(Pointer& part, ParameterList& list) { part->list(list); }
  void add(Pointer& part) {
    if (part) part->list(*this);
  }
  template <std::ranges::range Range>
  void add(Range& each) {
    for (auto& parameter : each) add(parameter);
  }
  template <class... Parameters>
    requires(sizeof...(Parameters) > 1)
  void add(Parameters&... parameters) {
    (add(parameters), ...);
  }
  std::vector<Slot> slots() const;
};

// A matrix with the same elements as an earlier one.
struct SharedMatrix {
  MatrixParameter* matrix;
  MatrixParameter* first;
};
// Removes from the list, and returns, each matrix that has the same elements of the same tensors as an
// earlier matrix. Layers that run several times in a step have such matrices.
std::vector<SharedMatrix> take_shared(std::vector<MatrixParameter*>& matrices);

// Creates parameters from names and shapes of tensors.
class Namer {
 public:
  Namer(const Names& all, std::string prefix, const Shard& of = {}, std::string part = {})
      : names(all), shard(of), prefix_(std::move(prefix)), part_(std::move(part)) {}

  const Names& names;
  const Shard shard;  // rank's part, for blocks that split themselves over ranks

  // Makes full names, without a prefix.
  Namer without_prefix() const { return {names, "", shard, part_}; }
  NormParameter norm(const NormSpec& spec, const std::string& name, std::int64_t size) const;
  // Returns a product whose matrix is a stack of tensors: tensors[i] has rows[i] rows.
  LinearParameter linear(const std::vector<std::string>& tensors, const std::vector<std::int64_t>& rows,
                         std::int64_t cols, bool bias) const;
  // Returns one matrix per expert, in the layout names.of<Experts>().storage. A matrix has `rows` rows, which
  // are the rows of the tensors, stacked. `down` means that columns are hidden units.
  std::vector<MatrixParameter> experts(const std::vector<std::string>& tensors, std::int64_t count,
                                       std::int64_t rows, std::int64_t cols, bool down = false) const;
  // Returns a stack [count, rows, cols] as one matrix [count * rows, cols].
  MatrixParameter stack(const std::string& tensor, std::int64_t count, std::int64_t rows,
                        std::int64_t cols) const;
  // Returns a [rows, row] matrix: the tensors, concatenated along the second dimension. All tensors have the
  // same width.
  VectorParameter rows_of_vectors(const std::vector<std::string>& tensors, std::int64_t rows,
                                  std::int64_t row) const;
  MatrixParameter table(const std::string& name, std::int64_t rows, std::int64_t cols, MatrixUse use) const;
  // Returns the tensors, concatenated; tensors[i] has sizes[i] elements.
  VectorParameter vector(const std::vector<std::string>& tensors,
                         const std::vector<std::int64_t>& sizes) const;

 private:
  std::string full(const std::string& name) const;

  std::string prefix_, part_;  // part_ is LayerSpec::part
};

}  // namespace octavo
