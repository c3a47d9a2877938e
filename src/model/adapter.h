// LoRA adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022). An adapter adds
// scale * x A^T B^T to linear products y = x W^T of a network, with A [rank, cols] and B [rows, rank]. The
// output matrix is such a product. An adapter of the embedding adds a column of B A to the token's embedding.
//
// In each step, the tokens with adapters are sorted by adapter. Two grouped products compute all of them: one
// with the A of every adapter, one with the B of every adapter. A token's result does not depend on other
// tokens. All adapters of an engine have equal dimensions: ranks are padded with zeros to the engine's
// max_rank. If a network stacks several tensors in one matrix, their A are stacked too, and their B are
// blocks on the diagonal of B. Each expert has separate products; its (token, expert) pairs are sorted by
// expert and adapter.
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

// The matrices of an adapter in host memory, after validation.
struct AdapterFile {
  // Change of one linear product. Matrices are row-major, in the format of the activations; B includes the
  // scale. For the embedding, A is transposed: [vocab, rank].
  struct Change {
    std::size_t linear = 0;  // LinearParameter::index. A matrix that stacks several tensors also has the
                             // indices before this one.
    std::vector<std::byte> a, b;
  };
  std::vector<Change> changes;
  Hash128 digest;  // hash of the files
};

// Low-rank matrices of one linear product, in the memory of a backend; null if the product is unchanged. B is
// zero outside its blocks: consecutive ranges of rows, each with the columns that are not zero.
struct AdapterChange {
  struct Block {
    WeightPtr b;
    std::int64_t first_row = 0, first_column = 0;
  };
  WeightPtr a;
  std::vector<Block> blocks{};  // blocks of B; equal for all adapters
};

// Indexed by AdapterFile::Change::linear.
using Adapter = std::vector<AdapterChange>;

struct AdapterConfig;

// Reads adapters in PEFT's format: adapter_config.json with adapter_model.safetensors or, if missing,
// adapter_model.bin.
class AdapterReader {
 public:
  // Prepares to read adapters of this network, for all pipeline stages, with activations in `format`.
  // experts: whether adapters may change single experts.
  AdapterReader(const ModelSpec& spec, DType format, int max_rank, bool experts);

  // Reads an adapter; thread-safe. It ignores tensors of image and sound encoders with a warning. Returns an
  // error if a file is missing or damaged, if the rank exceeds max_rank, or if a number is NaN or infinite.
  // It also returns an error if a tensor has another shape, or belongs to no linear layer, embedding or
  // output matrix of this network.
  Result<AdapterFile> read(const std::string& directory) const;

  // Copies the change to the backend's memory. A rank copies only its part, and nothing for layers of other
  // stages. No other thread may use the backend during the call.
  Result<AdapterChange> prepare(const AdapterFile::Change& change, Backend& backend) const;

  // Returns the number of products that an adapter can change.
  std::size_t linears() const { return linears_.size(); }
  // Returns the size in bytes of an adapter that changes all products.
  std::int64_t bytes_max() const;

 private:
  // Dimensions of the full matrix, as in adapter files, and this rank's part: columns, and ranges of rows for
  // each block of B.
  struct Linear {
    struct Block {
      std::int64_t part = 0;  // index of the part that contains all rows; -1: several parts contain them
      std::vector<RowRange> order{};
    };
    std::int64_t rows = 0, cols = 0, parts = 0;
    std::vector<Block> blocks{};
    RowRange columns{};
    bool own = false;  // whether the product belongs to this stage
  };
  static Linear linear_of(const MatrixParameter& w);
  static std::vector<Linear::Block> blocks_of(std::span<const std::int64_t> part_rows,
                                              std::vector<RowRange> order);
  // Position of a checkpoint's module in the matrix that contains it. A module with one parameter for all
  // experts (PEFT's target_parameters) has one matrix per expert, from `linear` on. Its A [experts * r, cols]
  // has the rows of each expert together, and its B [rows, r * experts] has the columns of an expert at a
  // distance of `experts`.
  struct Module {
    std::size_t linear = 0;
    std::int64_t part = 0, first_row = 0, rows = 0;
    std::int64_t experts = 1;
  };
  using Modules = std::vector<Module>;  // modules with the same name; several if the module has several
                                        // parameters

  // One of the two tensors of a module's change: A or B.
  struct Half;
  // Returns an error if the tensor fits neither the base model nor the other tensor of its change.
  Result<Half> half_of(const StoredTensor& tensor, std::string_view module, const AdapterConfig& config,
                       std::span<const StoredTensor> tensors) const;
  void put(const Half& half, std::int64_t expert, AdapterFile::Change& change) const;
  // Reads and converts the tensors. The digest of the result also covers the scales.
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

  std::vector<std::string> prefixes_;  // optional prefixes of the names of layers and the embedding
  std::vector<Linear> linears_;        // indexed by AdapterFile::Change::linear
  std::map<std::string, Modules, std::less<>> modules_;
  std::set<std::string, std::less<>> tower_;  // modules of the image or sound encoder, as names without
                                              // prefix (without_model())
  DType format_;
  int max_rank_;
  bool experts_;
  bool tied_;  // whether embedding and output matrix are the same matrix
  float embed_scale_;
};

// Tokens of a step that use an adapter.
struct StepAdapters {
  std::span<const Adapter* const> adapters;     // adapters of the step, without duplicates
  std::span<const std::int32_t> host_starts{};  // same as `starts`, in host memory
  View starts = {};  // i32 [adapters + 1]: adapter i has the tokens tokens[starts[i]] .. tokens[starts[i + 1]
                     // - 1]
  View tokens = {};  // i32 [tokens with an adapter]: indices of the tokens, sorted by adapter
};

// Returns the bytes of scratch memory that the functions below need for these numbers of tokens and rows of
// logits; 0 if max_rank is 0.
std::int64_t adapter_scratch_bytes(const ModelSpec& spec, DType activation, std::int64_t tokens,
                                   std::int64_t logit_rows, int max_rank);

// Adds to y the change of product `index` by the step's adapters. x: act [n, cols]; y: f32 or act [n, rows].
void add_changes(Backend& backend, const StepAdapters& all, Scratch scratch, const View& x, std::size_t index,
                 const View& y);

// The (token, expert) pairs for a product of experts.
struct ExpertPlaces {
  std::size_t index;  // MatrixParameter::index of the first expert
  View rows = {};     // i32 [pairs]: row of x for each pair; empty: pair i uses row i
  View tokens;        // i32 [pairs]: token of each pair
  View starts;        // i32 [experts + 1]: expert e has the pairs starts[e] .. starts[e + 1] - 1
};

// Adds to y the changes of a product of experts by the step's adapters, in host memory. x: act [n, cols]; y:
// act [pairs, rows].
void add_expert_changes(const Step& step, const View& x, const ExpertPlaces& places, const View& y);

// Adds to y, f32 [n, dim], the adapters' changes of the embeddings of `ids`, i32 [n].
void add_embedding_changes(Backend& backend, const StepAdapters& all, const Scratch& scratch, const View& ids,
                           const View& y);

}  // namespace octavo
