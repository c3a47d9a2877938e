// Draft heads with a small network for each position of a draft. They read one row of the target network's
// residual after the last norm. They keep no state between drafts and have no KV cache.
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
// remaining positions.
struct PlaceParameters {
  NormParameter input_norm;  // norm of the input row
  std::vector<MatrixParameter> tables;
  std::vector<LinearParameter> products;  // Medusa: one per block and position, in the order of positions
  std::vector<NormParameter> norms;
  std::vector<MatrixParameter> outputs;  // output matrices; empty: all positions use the target's

  ParameterList list();
};

// Parameters after loading.
struct LoadedPlaces {
  PlaceParameters parameters;
  Model model;         // model that owns the vectors; the size of its vocabulary is the number of logits
  const Model* other;  // target: the model for which the heads propose tokens
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

  // Allocates the workspaces for drafts of at most `sequences` sequences. Returns an error if memory does not
  // suffice.
  virtual Result<> reserve(std::int64_t sequences) = 0;

  // Begins a draft for each of these rows of the target's residual (Decoder::residual), after a step. rows:
  // i32 [n]. Residual and rows must not change until the drafts are complete.
  void begin(const View& residual, const View& rows) {
    residual_ = residual;
    rows_ = rows;
  }

  // Computes the logits of the token that follows position `place`; position 0 is the target's token. It
  // covers the first ids.size(0) drafts, whose earlier positions must be complete. ids: i32 [n], tokens at
  // `place`; out: f32 [n, vocab].
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

// In all functions, `other` is the target: it must outlive the heads, which use its format. path: a
// directory. They return the errors of Model::load, and an error if dimensions do not fit the target's.

// Loads Medusa's heads (Cai et al., "Medusa", ICML 2024), which read no token. Their blocks compute x +
// silu(W x + b). Each position has an output matrix, or all share one, or they use the target's. Names are
// vLLM's (blocks.0.layers.0, lm_heads.0, token_map) or the authors' (0.0.linear, 0.1).
Result<std::unique_ptr<PlaceHeads>> load_medusa(const std::string& path, const Model& other, Backend& backend,
                                                const LoadOptions& options);

// Loads IBM's MLP speculators (Wertheimer et al., "Accelerating Production LLMs with Combined Token/Embedding
// Speculators", 2024). Each position computes a state gelu(norm(W state + weight * embedding)) from the
// previous state and the token. The first state is the input row.
Result<std::unique_ptr<PlaceHeads>> load_mlp_speculator(const std::string& path, const Model& other,
                                                        Backend& backend, const LoadOptions& options);

// Loads the parameters of all positions, for both types of heads. Returns an error if tensors are missing,
// unknown or of another shape.
Result<std::unique_ptr<LoadedPlaces>> load_places(ModelSpec spec, PlaceParameters parameters,
                                                  const std::vector<std::string>& ignorable,
                                                  const Checkpoint& checkpoint, const Model& other,
                                                  Backend& backend, const LoadOptions& options);

}  // namespace octavo
