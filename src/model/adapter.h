// LoRA adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022): to linear products
// y = x W^T of a network comes scale * x A^T B^T, with A [rank, cols] and B [rows, rank].
//
// Tokens of a step that have an adapter are sorted by it; one grouped product with all adapters' A and one
// with their B then serve them all, and a token's numbers are the same whoever else is there. All adapters of
// an engine have one shape: ranks are padded with zeros to the engine's max_rank. Where a network stacks
// several tensors in one matrix, A stacks theirs, and theirs are blocks on B's diagonal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "kernels/ops.h"
#include "model/network.h"
#include "model/spec.h"

namespace octavo {

struct StepContext;

// An adapter's numbers, checked, in host memory.
struct AdapterFile {
  // Of one linear product: in the activations' format, row by row, B with its scale.
  struct Change {
    std::size_t linear = 0;  // LinearParameter::index
    std::vector<std::byte> a, b;
  };
  std::vector<Change> changes;
  Hash128 digest;  // of the files
};

// The low-rank matrices of one linear product in the memory of a backend; null: it stays as it is.
struct AdapterChange {
  WeightPtr a, b;
};

// By LinearParameter::index.
using Adapter = std::vector<AdapterChange>;

// Reads PEFT's folders: adapter_config.json and adapter_model.safetensors.
class AdapterReader {
 public:
  // For adapters of this network, whose activations are in `format`.
  AdapterReader(const ModelSpec& spec, DType format, int max_rank);

  // Any thread. Errors: a file is missing or damaged; the rank is beyond max_rank; a tensor is of no linear
  // layer of this network, or has another shape; a number is NaN or infinite.
  Result<AdapterFile> read(const std::string& directory) const;

  // In the memory of a backend, which nobody else may use meanwhile.
  Result<AdapterChange> prepare(const AdapterFile::Change& change, Backend& backend) const;

  // Products that an adapter can change.
  std::size_t linears() const { return linears_.size(); }
  // Of an adapter that changes all of them.
  std::int64_t bytes_max() const;

 private:
  struct Linear {
    std::int64_t rows = 0, cols = 0, parts = 0;
    std::vector<RowRange> order;
  };
  // Where a module of the checkpoint is in its matrix.
  struct Module {
    std::size_t linear = 0;
    std::int64_t part = 0, first_row = 0, rows = 0;
  };

  Result<const Module*> find(std::string_view name) const;
  std::int64_t rank(const Linear& linear) const { return linear.parts * max_rank_; }

  std::vector<std::string> prefixes_;  // that may stand before the layers' names
  std::vector<Linear> linears_;        // by LinearParameter::index
  std::map<std::string, Module, std::less<>> modules_;
  DType format_;
  int max_rank_;
};

// Which tokens of a step have an adapter.
struct StepAdapters {
  std::span<const Adapter* const> adapters;    // those that are there, each once
  std::span<const std::int32_t> host_starts{}; // as below
  View starts = {};  // i32 [adapters + 1]: adapter i's tokens are tokens[starts[i]] .. tokens[starts[i + 1] - 1]
  View tokens = {};  // i32 [places]
};

// Bytes that add_changes() works in, for steps of so many tokens; none where max_rank is 0.
std::int64_t adapter_scratch_bytes(const ModelSpec& spec, DType activation, std::int64_t tokens, int max_rank);

// y += what the step's adapters have for this product.
void add_changes(const StepContext& step, const View& x, const LinearParameter& w, const View& y);

}  // namespace octavo
