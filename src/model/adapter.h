// LoRA adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022): to linear
// products y = x W^T of a network comes scale * x A^T B^T, with A [rank, cols] and B [rows, rank]. The output
// matrix is such a product; to a token's embedding comes its column of B A.
//
// A step's tokens with adapters are sorted by adapter. Two grouped products, one with the A and one with
// the B of all adapters, serve all tokens. A token's numbers do not depend on the other tokens. All
// adapters of an engine have one shape: ranks are padded with zeros to the engine's max_rank. If a network
// stacks several tensors in one matrix, A stacks theirs, and their B are blocks on B's diagonal. Each
// expert has separate products; there, pairs of token and expert are sorted by expert and adapter.
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

// An adapter's numbers, checked, in host memory.
struct AdapterFile {
  // Change of one linear product: row-major, in the activations' format, B with its scale. The embedding's
  // A is transposed, [vocab, rank].
  struct Change {
    std::size_t linear = 0;  // LinearParameter::index, or one of those before
    std::vector<std::byte> a, b;
  };
  std::vector<Change> changes;
  Hash128 digest;  // of the files
};

// The low-rank matrices of one linear product in the memory of a backend; null: no change. B is zero
// outside its blocks: consecutive ranges of rows, each with the columns that are not zero.
struct AdapterChange {
  struct Block {
    WeightPtr b;
    std::int64_t first_row = 0, first_column = 0;
  };
  WeightPtr a;
  std::vector<Block> blocks{};  // of every adapter alike
};

// Indexed by AdapterFile::Change::linear.
using Adapter = std::vector<AdapterChange>;

struct AdapterConfig;

// Reads PEFT's folders: adapter_config.json and adapter_model.safetensors, else adapter_model.bin.
class AdapterReader {
 public:
  // For adapters of this network, of all its stages, whose activations are in `format`; with `experts`, of its single
  // experts, too.
  AdapterReader(const ModelSpec& spec, DType format, int max_rank, bool experts);

  // May run on any thread. Tensors of image and sound encoders are ignored, with a warning. Errors: a file
  // is missing or damaged; the rank exceeds max_rank; a tensor does not belong to a linear layer of this
  // network, its embedding or output matrix, or has another shape; a number is NaN or infinite.
  Result<AdapterFile> read(const std::string& directory) const;

  // In the memory of a backend, which nobody else may use meanwhile; on a rank, its part, and nothing of the layers of
  // other stages.
  Result<AdapterChange> prepare(const AdapterFile::Change& change, Backend& backend) const;

  // Products that an adapter can change.
  std::size_t linears() const { return linears_.size(); }
  // Bytes of an adapter that changes all products.
  std::int64_t bytes_max() const;

 private:
  // The whole matrix, as adapters know it, and what of it this rank has: rows, by the blocks that they are of
  // B, and columns.
  struct Linear {
    struct Block {
      std::int64_t part = 0;  // of all rows; -1: they are of several parts
      std::vector<RowRange> order{};
    };
    std::int64_t rows = 0, cols = 0, parts = 0;
    std::vector<Block> blocks{};
    RowRange columns{};
    bool own = false;  // of this stage
  };
  static Linear linear_of(const MatrixParameter& w);
  static std::vector<Linear::Block> blocks_of(std::span<const std::int64_t> part_rows,
                                              std::vector<RowRange> order);
  // Position of a module of the checkpoint in its matrix. A module with one parameter for all experts
  // (PEFT's target_parameters) covers one matrix for each expert, from `linear` on. There A [experts * r,
  // cols] has each expert's rows together, and B [rows, r * experts] has its columns far apart.
  struct Module {
    std::size_t linear = 0;
    std::int64_t part = 0, first_row = 0, rows = 0;
    std::int64_t experts = 1;
  };
  using Modules = std::vector<Module>;  // of one name: more than one where it has several parameters

  // A tensor of an adapter: half of the change of a module.
  struct Half;
  // Errors: the tensor, or the other one of its change, does not fit the base model.
  Result<Half> half_of(const StoredTensor& tensor, std::string_view module, const AdapterConfig& config,
                       std::span<const StoredTensor> tensors) const;
  void put(const Half& half, std::int64_t expert, AdapterFile::Change& change) const;
  // Also computes a digest of the scales.
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

  std::vector<std::string> prefixes_;  // optional prefixes of layer and embedding names
  std::vector<Linear> linears_;        // by AdapterFile::Change::linear
  std::map<std::string, Modules, std::less<>> modules_;
  std::set<std::string, std::less<>> tower_;  // modules of the encoder of images or sound, without_model()
  DType format_;
  int max_rank_;
  bool experts_;
  bool tied_;  // embedding and output matrix are one
  float embed_scale_;
};

// The tokens of a step that have an adapter.
struct StepAdapters {
  std::span<const Adapter* const> adapters;    // the adapters of the step, each once
  std::span<const std::int32_t> host_starts{}; // as below
  View starts = {};  // i32 [adapters + 1]: adapter i's tokens are tokens[starts[i]] .. tokens[starts[i + 1] - 1]
  View tokens = {};  // i32 [tokens with an adapter]
};

// Bytes of scratch memory for both functions below, for the given numbers of tokens and logits rows; 0 if
// max_rank is 0.
std::int64_t adapter_scratch_bytes(const ModelSpec& spec, DType activation, std::int64_t tokens,
                                   std::int64_t logit_rows, int max_rank);

// y += change by the step's adapters of the product `index`; x: act [n, cols], y: f32 or act [n, rows].
void add_changes(Backend& backend, const StepAdapters& all, Scratch scratch, const View& x, std::size_t index,
                 const View& y);

// The pairs (token, expert) of a product of experts.
struct ExpertPlaces {
  std::size_t index;  // MatrixParameter::index of the first expert
  View rows = {};     // i32 [pairs]: of x; empty: row i for pair i
  View tokens;        // i32 [pairs]
  View starts;        // i32 [experts + 1]: expert e has the pairs starts[e] .. starts[e + 1] - 1
};

// y += what the step's adapters have for a product of experts, in host memory. x: act [n, cols], y: act
// [pairs, rows].
void add_expert_changes(const Step& step, const View& x, const ExpertPlaces& places, const View& y);

// y += what they have for the embeddings of `ids`: i32 [n], y: f32 [n, dim].
void add_embedding_changes(Backend& backend, const StepAdapters& all, const Scratch& scratch, const View& ids,
                           const View& y);

}  // namespace octavo
