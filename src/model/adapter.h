// LoRA adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022): reads their
// files, and applies them in the forward pass.
// An adapter adds scale * x A^T B^T to a linear product y = x W^T, with A [rank, cols] and B [rows, rank]. It
// may also change the output matrix and the embedding. For the embedding, column t of B A is added to the row
// of token t.
// In each step, tokens with adapters are sorted by adapter. One grouped product applies the A of every
// adapter, a second one applies every B. So a token's result does not depend on other tokens. All adapters of
// an engine have equal dimensions: ranks are padded with zeros to the engine's max_rank. If the network
// stacks several tensors in one matrix (such as q, k and v), the A of these tensors are stacked too, and the
// B of these tensors become diagonal blocks of one B. Every expert has separate products, and the (token,
// expert) pairs are sorted by expert and adapter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "kernels/ops.h"
#include "model/blocks/block.h"
#include "model/spec.h"

namespace octavo {

// The matrices of an adapter in host memory, after their shapes and values were checked.
struct AdapterFile {
  // Change of one linear product. Both matrices are row-major, in the format of the activations. B includes
  // the scale. For the embedding, A is transposed: [vocab, rank].
  struct Change {
    // index of the product: LinearParameter::index, an expert's MatrixParameter::index, or a constant of
    // parameters.h
    std::size_t linear = 0;
    std::vector<std::byte> a, b;
  };
  std::vector<Change> changes;
  Hash128 digest;
};

// Low-rank matrices of one linear product in the memory of a backend. A null `a` means that the adapter does
// not change the product. B is stored as blocks: a block has consecutive rows, and only the columns that are
// not zero in these rows.
struct AdapterChange {
  struct Block {
    WeightPtr b;
    std::int64_t first_row = 0, first_column = 0;
  };
  WeightPtr a;
  std::vector<Block> blocks{};  // all adapters have blocks at the same positions
};

// Indexed by AdapterFile::Change::linear.
using Adapter = std::vector<AdapterChange>;

struct AdapterConfig;

// Reads adapters in PEFT's format: adapter_config.json and adapter_model.safetensors or adapter_model.bin. If
// the base model is a GGUF file, adapters are GGUF files.
class AdapterReader {
 public:
  // Prepares to read adapters for all pipeline stages of the network. `format` is the format of activations.
  // `experts` tells whether adapters may change single experts.
  AdapterReader(const ModelSpec& spec, DType format, int max_rank, bool experts);

  // Reads an adapter. Thread-safe. Ignores tensors of image and audio encoders with a warning. Returns an
  // error if a file is missing or damaged, if the rank exceeds max_rank, or if a number is NaN or infinite.
  // Also returns an error if a tensor has another shape than the network requires, or belongs to no linear
  // layer, embedding or output matrix of this network.
  Result<AdapterFile> read(const std::string& path) const;

  // Copies the change to the backend's memory. A rank copies only its part, and nothing for layers of other
  // stages. No other thread may use the backend during the call.
  Result<AdapterChange> prepare(const AdapterFile::Change& change, Backend& backend) const;

  std::size_t linears() const { return linears_.size(); }
  // Size in bytes of an adapter that changes all products.
  std::int64_t bytes_max() const;

 private:
  // One product: the dimensions of the full matrix, as in adapter files, and the columns and rows of B that
  // this rank keeps.
  struct Linear {
    struct Block {
      // index of the stacked tensor that contains all rows of the block; -1: they are in several tensors
      std::int64_t part = 0;
      std::vector<RowRange> order{};
    };
    std::int64_t rows = 0, cols = 0, parts = 0;
    std::vector<Block> blocks{};
    RowRange columns{};
    bool own = false;  // the product is in this process's pipeline stage
  };
  static Linear linear_of(const MatrixParameter& w);
  static std::vector<Linear::Block> blocks_of(std::span<const std::int64_t> part_rows,
                                              std::vector<RowRange> order);
  // Where a module of the checkpoint is in the network: in matrix `linear`, as stacked tensor `part`, from
  // row `first_row` on. A module may have one parameter for all experts (PEFT's target_parameters). Then
  // expert e has matrix linear + e, rows [e * r, e * r + r) of A [experts * r, cols], and the columns e, e +
  // experts, .. of B [rows, r * experts].
  struct Module {
    std::size_t linear = 0;
    std::int64_t part = 0, first_row = 0, rows = 0;
    std::int64_t experts = 1;
  };
  // one entry for each parameter of the module; all entries have the same name
  using Modules = std::vector<Module>;

  // A or B of one module.
  struct Half;
  // Returns an error if the tensor does not fit the base model, or if its A and B do not fit each other.
  Result<Half> half_of(const StoredTensor& tensor, std::string_view module, const AdapterConfig& config,
                       std::span<const StoredTensor> tensors) const;
  void put(const Half& half, std::int64_t expert, AdapterFile::Change& change) const;
  // Reads and converts the tensors. The digest covers the tensors and the scales.
  Result<AdapterFile> read_tensors(const std::string& directory, const AdapterConfig& config,
                                   std::span<const StoredTensor> tensors) const;
  void add_tower(ModelSpec tower);
  bool is_of_tower(std::string_view module) const;
  void add_experts(const ModelSpec& spec, const ParameterList::ExpertProduct& product);
  void add_module(std::string_view name, const Module& module);
  Result<const Modules*> find(std::string_view name) const;
  Result<const Module*> find(std::string_view name, const StoredTensor& a, const StoredTensor& b,
                             int rank) const;
  Result<> check_base_matrix(const StoredTensor& tensor, std::string_view module) const;
  void note_own(const ModelSpec& spec);
  std::int64_t rank(const Linear& linear) const { return linear.parts * max_rank_; }

  std::vector<std::string> prefixes_;  // optional prefixes in the names of layers and of the embedding
  std::vector<Linear> linears_;        // indexed by AdapterFile::Change::linear
  std::map<std::string, Modules, std::less<>> modules_;
  // modules of the image or audio encoder; names have no prefix (without_model())
  std::set<std::string, std::less<>> tower_;
  DType format_;
  int max_rank_;
  bool experts_;
  bool gguf_;
  bool tied_;  // embedding and output matrix are the same matrix
  float embed_scale_;
};

struct StepAdapters {
  std::span<const Adapter* const> adapters;  // without duplicates
  // i32 [adapters + 1]: adapter i changes the tokens tokens[starts[i]] .. tokens[starts[i + 1] - 1]
  View starts = {};
  View tokens = {};  // i32: indices of tokens, sorted by adapter; those after the last start are not used
};

// Bytes of scratch memory that the functions below need for a step of `tokens` tokens and `logit_rows` rows
// of logits. The result is 0 if max_rank is 0.
std::int64_t adapter_scratch_bytes(const ModelSpec& spec, DType activation, std::int64_t tokens,
                                   std::int64_t logit_rows, int max_rank);

// Adds the adapters' changes of product `index` to y. Shapes: x is act [n, cols], y is f32 or act [n, rows].
void add_changes(Backend& backend, const StepAdapters& all, Scratch scratch, const View& x, std::size_t index,
                 const View& y);

struct ExpertPairs {
  std::size_t index;  // MatrixParameter::index of the first expert
  View rows = {};     // i32 [pairs]: the row of x that each pair reads; empty: pair i reads row i
  View tokens;        // i32 [pairs]: token of each pair
  View starts;        // i32 [experts + 1]: expert e computes the pairs starts[e] .. starts[e + 1] - 1
};

// Adds the adapters' changes of a product of experts to y. Shapes: x is act [n, cols], y is act [pairs,
// rows]. All views must be in host memory.
void add_expert_changes(const Step& step, const View& x, const ExpertPairs& pairs, const View& y);

// Adds the adapters' changes of the embedding to y, f32 [n, dim], for the token ids `ids`, i32 [n].
void add_embedding_changes(Backend& backend, const StepAdapters& all, const Scratch& scratch, const View& ids,
                           const View& y);

}  // namespace octavo
