// Parameters of a network: matrices and vectors, each with its tensors in the checkpoint and, once loaded,
// its values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "model/spec.h"
#include "weights/slots.h"

namespace octavo {

// Rows begin, begin + step .. of a matrix, or elements of a vector; begin -1: zeros.
struct RowRange {
  std::int64_t begin;
  std::int64_t count;
  std::int64_t step = 1;
};

// Which precision LoadOptions::quantization gives a plain matrix.
enum class MatrixUse : std::uint8_t {
  layer,   // the requested layer
  table,   // embedding and output matrix: int8
  plain,   // not quantised; a matrix that is stored quantised becomes plain
  router,  // not quantised; its format does not count as the format of the checkpoint
};

// A matrix [rows, cols]: the tensors stacked by rows, or those of their rows that `order` lists.
struct MatrixParameter {
  std::vector<Slot> parts;      // empty if the network has no such matrix
  std::int64_t slice = -1;      // >= 0: index in a stack [slices, ..]
  std::int64_t slices = 0;      // if not 0, the number of tensors in such a stack, whose rows are consecutive
  bool transposed = false;      // each tensor is stored [cols, rows]
  bool turned = false;          // each range of `order` [count, cols] counts as its transpose [cols, count]
  // If not 0: each run of stored_run_cols columns of a tensor is padded with zeros to `run_cols`.
  std::int64_t stored_run_cols = 0, run_cols = 0;
  std::int64_t channels = 0;  // not 0: each row is stored [channels, cols / channels] and used transposed
  std::optional<Slot> scale = {};  // a vector [rows] in the checkpoint, by which the rows are multiplied
  std::vector<RowRange> order;     // not empty: these rows in this order, each range in one tensor
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool difference = false;     // a single row: the first row of `order` minus the second
  bool sharded = false;        // a rank's part; if it is contiguous in a plain tensor, only it is read
  std::int64_t first_col = 0;  // columns [first_col, first_col + cols)
  MatrixUse use = MatrixUse::layer;
  std::size_t index = 0;  // for an expert: LinearParameter::index
  WeightPtr weight;  // null until it is loaded

  std::int64_t elements() const { return rows * cols; }
  // Whether zeros that no tensor holds are among its rows or columns.
  bool padded() const {
    return run_cols > 0 || std::ranges::any_of(order, [](const RowRange& range) { return range.begin < 0; });
  }
};

// Elements [begin, begin + count) of a vector, multiplied.
struct Factor {
  std::int64_t begin;
  std::int64_t count;
  float factor;
};

// A vector, kept in f32: the tensors one after the other.
struct VectorParameter {
  std::vector<Slot> parts;      // empty if the network has no such vector
  std::vector<float> constant;  // or it is not in the checkpoint: these are its elements
  std::vector<RowRange> order;
  float offset = 0;  // added to each element
  bool rates = false;              // each element is stored as -exp of it
  bool shares = false;             // each element s counts as the row (s, 1 - s); size and row are of these
  std::optional<Slot> scale = {};  // another one as long, by which it is multiplied
  std::vector<Factor> factors;
  std::int64_t size = 0;
  std::int64_t row = 0;             // not 0: length of rows, tensors side by side; `order` per row
  std::vector<RowRange> kept_rows;  // not empty: only these rows
  std::int64_t below = 0;           // if not 0, the elements are integers in [0, below)
  // the tensor is one number, which may be infinite and fills all `size` elements
  bool repeated = false;
  View value;            // f32 [size], or [size / row, row]; empty until it is loaded
};
VectorParameter constant_vector(std::vector<float> elements);

// Numbers of the products that LoRA adapters can change: the embedding, the output matrix, all linear
// products of the whole network, then those of experts, one number for each expert.
constexpr std::size_t kEmbeddingIndex = 0, kOutputIndex = 1, kFirstLinearIndex = 2;

// Numbers below and above are cut off: of each column (ClampArgs).
struct BoundsParameter {
  VectorParameter least, most;
};

struct LinearParameter {
  MatrixParameter weight;
  VectorParameter bias;
  BoundsParameter input, output;  // bounds, if any, of input and output
  std::size_t index = 0;  // among the network's, from kFirstLinearIndex on

  // Multiplies the outputs by a vector that the checkpoint has beside the matrix.
  void scale_by(const Slot& vector);
};

struct NormParameter {
  NormSpec spec;
  VectorParameter weight;
  VectorParameter bias;

  Norm norm() const { return {spec.kind, spec.eps, weight.value, bias.value}; }
};

// Keep only these rows, elements or columns of a matrix, a vector, or a matrix with its bias: a rank's
// part. Rows are numbered as in the network. If columns are split, the ranks' products are summed, so that
// one rank has the bias.
void keep_rows(MatrixParameter& matrix, const std::vector<RowRange>& rows);
void keep_rows(VectorParameter& vector, const std::vector<RowRange>& rows);
void keep_rows(LinearParameter& linear, const std::vector<RowRange>& rows);
void keep_columns(MatrixParameter& matrix, std::int64_t begin, std::int64_t count);
void keep_columns(LinearParameter& linear, std::int64_t begin, std::int64_t count, bool bias);
void keep_columns(VectorParameter& rows, const std::vector<RowRange>& columns);  // of VectorParameter::row

// The existing parameters of a network, in the order of the forward pass.
struct ParameterList {
  std::vector<MatrixParameter*> matrices;
  std::vector<VectorParameter*> vectors;
  std::vector<LinearParameter*> linears;  // their parts are among the other parameters
  // A product of experts: a matrix for each, which are among the others, and how many of them a token passes.
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
  // A part of a block that lists its own parameters; a pointer to one; several of the above, in their order.
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

// Finds the names and shapes of a network's tensors; `prefix` comes before every name.
class Namer {
 public:
  Namer(const Names& all, std::string prefix, const Shard& of = {}, std::string part = {})
      : names(all), shard(of), prefix_(std::move(prefix)), part_(std::move(part)) {}

  const Names& names;
  const Shard shard;  // for blocks, which know how they are split

  NormParameter norm(const NormSpec& spec, const std::string& name, std::int64_t size) const;
  // `tensors` stacked by rows: rows[i] belongs to tensors[i].
  LinearParameter linear(const std::vector<std::string>& tensors, const std::vector<std::int64_t>& rows,
                         std::int64_t cols, bool bias) const;
  // One matrix for each of `count` experts, in the layout names.of<Experts>().storage: the tensors' rows,
  // `rows` in all, stacked. `down`: their columns are the hidden units.
  std::vector<MatrixParameter> experts(const std::vector<std::string>& tensors, std::int64_t count,
                                       std::int64_t rows, std::int64_t cols, bool down = false) const;
  // A stack [count, rows, cols] as one matrix [count * rows, cols].
  MatrixParameter stack(const std::string& tensor, std::int64_t count, std::int64_t rows,
                        std::int64_t cols) const;
  // [rows, row]: the tensors, of equal width, side by side.
  VectorParameter rows_of_vectors(const std::vector<std::string>& tensors, std::int64_t rows,
                                  std::int64_t row) const;
  MatrixParameter table(const std::string& name, std::int64_t rows, std::int64_t cols, MatrixUse use) const;
  // tensors[i], of sizes[i] elements, one after the other.
  VectorParameter vector(const std::vector<std::string>& tensors,
                         const std::vector<std::int64_t>& sizes) const;

 private:
  std::string full(const std::string& name) const;

  std::string prefix_, part_;  // LayerSpec::part
};

}  // namespace octavo
