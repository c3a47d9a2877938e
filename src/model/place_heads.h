// Draft heads that have a small network for each position of a draft. They read one row of the target
// network's residual after the last norm. They keep no state and have no cache.
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

// Parameters of all positions. If a list has fewer entries than positions, its last entry is used for the
// rest.
struct PlaceParameters {
  NormParameter input_norm;  // norm of the input row
  std::vector<MatrixParameter> tables;
  std::vector<LinearParameter> products;  // Medusa: one for each block of each position, position by position
  std::vector<NormParameter> norms;
  std::vector<MatrixParameter> outputs;  // output matrices; empty: all positions use the target's

  ParameterList list();
};

// Parameters with their values.
struct LoadedPlaces {
  PlaceParameters parameters;
  Model model;         // owns the vectors; the size of its vocabulary is the number of logits
  const Model* other;  // the target: the model for which the heads propose
};

class PlaceHeads {
 public:
  // tokens: token id of each logit; empty: logit i belongs to token i.
  PlaceHeads(Backend& backend, std::unique_ptr<LoadedPlaces> loaded, int places,
             std::vector<std::int32_t> tokens)
      : backend_(backend), loaded_(std::move(loaded)), places_(places), tokens_(std::move(tokens)) {}
  virtual ~PlaceHeads() = default;

  int places() const { return places_; }
  const Model& model() const { return loaded_->model; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

  // Allocates the workspaces for drafts of at most `sequences` sequences. Error: not enough memory.
  virtual Result<> reserve(std::int64_t sequences) = 0;

  // Begins a draft for each of these rows of the target's residual (Decoder::residual), after a step. rows:
  // i32 [n]. Residual and rows must not change until the drafts are complete.
  void begin(const View& residual, const View& rows) {
    residual_ = residual;
    rows_ = rows;
  }

  // Computes the logits of the token that follows position `place`; position 0 is the target's token. Covers
  // the first ids.size(0) drafts, whose earlier positions must be complete. ids: i32 [n], tokens at `place`;
  // out: f32 [n, vocab].
  virtual void logits(int place, const View& ids, const View& out) = 0;

 protected:
  Result<View> allocate(DType type, std::int64_t rows, std::int64_t cols);
  const PlaceParameters& parameters() const { return loaded_->parameters; }
  const Model& other() const { return *loaded_->other; }
  // Copies the first n rows of the residual after the last norm. out: f32 [n, dim].
  void copy_hidden(std::int64_t n, const View& out) const;

  Backend& backend_;

 private:
  std::unique_ptr<LoadedPlaces> loaded_;
  int places_;
  std::vector<std::int32_t> tokens_;
  std::vector<Buffer> workspaces_;
  View residual_, rows_;
};

// `other` is the target: it must outlive the heads, which use its format. path: a directory. Errors: those of
// Model::load; dimensions that do not fit the target's.

// Loads Medusa's heads (Cai et al., "Medusa", ICML 2024), which read no token: blocks x + silu(W x + b). Each
// position has an output matrix, all share one, or they use the target's. Names are vLLM's
// (blocks.0.layers.0, lm_heads.0, token_map) or the authors' (0.0.linear, 0.1).
Result<std::unique_ptr<PlaceHeads>> load_medusa(const std::string& path, const Model& other, Backend& backend,
                                                const LoadOptions& options);

// Loads IBM's MLP speculators (Wertheimer et al., "Accelerating Production LLMs with Combined Token/Embedding
// Speculators", 2024). Each position computes a state gelu(norm(W state + weight * embedding)) from the
// previous state and the token. The first state is the input row.
Result<std::unique_ptr<PlaceHeads>> load_mlp_speculator(const std::string& path, const Model& other,
                                                        Backend& backend, const LoadOptions& options);

// For both types of heads: loads the parameters of all positions. Error: tensors are missing, unknown or of
// another shape.
Result<std::unique_ptr<LoadedPlaces>> load_places(ModelSpec spec, PlaceParameters parameters,
                                                  const std::vector<std::string>& ignorable,
                                                  const Checkpoint& checkpoint, const Model& other,
                                                  Backend& backend, const LoadOptions& options);

}  // namespace octavo
