// Draft heads with a small network for each position of a draft. It reads one row of another network's
// residual after the last norm. The heads keep no state of a text, and have no cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "model/parameters.h"

namespace octavo {

// If a list is shorter than the number of positions, its last entry serves all later positions.
struct PlaceParameters {
  NormParameter input_norm;  // norm of the row
  std::vector<MatrixParameter> tables;
  std::vector<LinearParameter> products;  // Medusa: one for each block of each position
  std::vector<NormParameter> norms;
  std::vector<MatrixParameter> outputs;  // if empty, all use the other network's matrix

  ParameterList list();
};

// Parameters with their values.
struct LoadedPlaces {
  PlaceParameters parameters;
  Model model;         // holds the vectors; its vocabulary are the columns of the logits
  const Model* other;  // the model for which they propose
};

class PlaceHeads {
 public:
  // tokens: token of each column of the logits; empty: token i is column i.
  PlaceHeads(Backend& backend, std::unique_ptr<LoadedPlaces> loaded, int places,
             std::vector<std::int32_t> tokens)
      : backend_(backend), loaded_(std::move(loaded)), places_(places), tokens_(std::move(tokens)) {}
  virtual ~PlaceHeads() = default;

  int places() const { return places_; }
  const Model& model() const { return loaded_->model; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

  // Allocates the workspaces for drafts of at most `sequences` sequences. Error: not enough memory.
  virtual Result<> reserve(std::int64_t sequences) = 0;

  // Begins a draft for each row of the other network's residual (Decoder::residual) after a step: rows i32
  // [n]. Both must not change until the drafts are made.
  void begin(const View& residual, const View& rows) {
    residual_ = residual;
    rows_ = rows;
  }

  // Logits of the token after number `place` of the drafts; number 0 is the other network's token. Covers
  // the first ids.size(0) drafts, for which all earlier positions are done. ids i32 [n], out f32 [n,
  // vocab].
  virtual void logits(int place, const View& ids, const View& out) = 0;

 protected:
  Result<View> allocate(DType type, std::int64_t rows, std::int64_t cols);
  const PlaceParameters& parameters() const { return loaded_->parameters; }
  const Model& other() const { return *loaded_->other; }
  // Copies the first n rows of the residual after its last norm: out f32 [n, dim].
  void copy_hidden(std::int64_t n, const View& out) const;

  Backend& backend_;

 private:
  std::unique_ptr<LoadedPlaces> loaded_;
  int places_;
  std::vector<std::int32_t> tokens_;
  std::vector<Buffer> workspaces_;
  View residual_, rows_;
};

// The draft heads propose for `other`, which outlives them, and compute in its format. path: a directory.
// Errors: those of Model::load; numbers that do not fit the other's.

// Medusa's heads (Cai et al., "Medusa", ICML 2024), which read no token: blocks x + silu(W x + b). The
// output matrix is separate for each position, shared by all, or the other network's. Names are vLLM's
// (blocks.0.layers.0, lm_heads.0, token_map), or the authors' (0.0.linear, 0.1).
Result<std::unique_ptr<PlaceHeads>> load_medusa(const std::string& path, const Model& other, Backend& backend,
                                                const LoadOptions& options);

// IBM's MLP speculators (Wertheimer et al., "Accelerating Production LLMs with Combined Token/Embedding
// Speculators", 2024). Each position makes a new state gelu(norm(W state + weight * embedding)) from the
// last state and the token; the first state is the row.
Result<std::unique_ptr<PlaceHeads>> load_mlp_speculator(const std::string& path, const Model& other,
                                                        Backend& backend, const LoadOptions& options);

// For both kinds: reads the parameters of all positions from the checkpoint's tensors. Error: tensors are
// missing, left over or of another shape.
Result<std::unique_ptr<LoadedPlaces>> load_places(ModelSpec spec, PlaceParameters parameters,
                                                  const std::vector<std::string>& ignorable,
                                                  const Checkpoint& checkpoint, const Model& other,
                                                  Backend& backend, const LoadOptions& options);

}  // namespace octavo
