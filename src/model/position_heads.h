// Draft heads without attention (Medusa, MLP speculators): a small network for each position of a draft. They
// read one row of the target's residual after the final norm. They keep no state between drafts and have no
// KV cache.
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

// Parameters of all positions. If a list has fewer entries than positions, the last entry is used for the
// remaining positions.
struct PositionParameters {
  NormParameter input_norm;
  std::vector<MatrixParameter> tables;
  std::vector<LinearParameter> products;  // Medusa: one per block and position, sorted by position
  std::vector<NormParameter> norms;
  std::vector<MatrixParameter> outputs;  // output matrices; empty: all positions use the target's

  ParameterList list();
};

struct LoadedPositionHeads {
  PositionParameters parameters;
  // owns the vectors; each position has one logit for each entry of this model's vocabulary
  Model model;
  const Model* other;  // the target
};

class PositionHeads {
 public:
  // `tokens` has the token id of each logit. If it is empty, logit i belongs to token i.
  PositionHeads(Backend& backend, std::unique_ptr<LoadedPositionHeads> loaded, int positions,
                std::vector<std::int32_t> tokens)
      : backend_(backend), loaded_(std::move(loaded)), positions_(positions), tokens_(std::move(tokens)) {}
  virtual ~PositionHeads() = default;

  int positions() const { return positions_; }
  const Model& model() const { return loaded_->model; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

  // Allocates the workspaces for drafts of at most `sequences` sequences.
  virtual Result<> reserve(std::int64_t sequences) = 0;

  // Begins a draft for each of these rows of the target's residual (Decoder::residual), after a step. `rows`
  // is i32 [n]. Residual and rows must not change until the drafts are complete.
  void begin(const View& residual, const View& rows) {
    residual_ = residual;
    rows_ = rows;
  }

  // Computes the logits of the token after position `position`; position 0 is the target's token. Computes
  // only the first ids.size(0) drafts. Their earlier positions must be complete. ids: i32 [n], the tokens at
  // `position`; out: f32 [n, vocab].
  virtual void logits(int position, const View& ids, const View& out) = 0;

 protected:
  Result<View> allocate(DType type, std::int64_t rows, std::int64_t cols);
  const PositionParameters& parameters() const { return loaded_->parameters; }
  const Model& other() const { return *loaded_->other; }
  // Copies the first n rows of the residual after the final norm to `out`, f32 [n, dim].
  void copy_hidden(std::int64_t n, const View& out) const;

  Backend& backend_;

 private:
  std::unique_ptr<LoadedPositionHeads> loaded_;
  int positions_;
  std::vector<std::int32_t> tokens_;
  std::vector<Buffer> workspaces_;
  View residual_, rows_;
};

// In all functions, `other` is the target, which must outlive the heads, and `path` is a directory. The heads
// compute in the target's format. The functions return the errors of Model::load, and an error if dimensions
// do not fit the target.

// Loads Medusa's heads (Cai et al., "Medusa", ICML 2024), which read no token. Their blocks compute x +
// silu(W x + b). Each position has an output matrix, or all positions share one, or all use the target's.
// Tensors may have vLLM's names (blocks.0.layers.0, lm_heads.0, token_map) or the authors' names (0.0.linear,
// 0.1).
Result<std::unique_ptr<PositionHeads>> load_medusa(const std::string& path, const Model& other,
                                                   Backend& backend, const LoadOptions& options);

// Loads IBM's MLP speculators (Wertheimer et al., "Accelerating Production LLMs with Combined Token/Embedding
// Speculators", 2024). Each position computes a state gelu(norm(W state + weight * embedding)) from the
// previous state and the token. The first state is the row of the target's residual.
Result<std::unique_ptr<PositionHeads>> load_mlp_speculator(const std::string& path, const Model& other,
                                                           Backend& backend, const LoadOptions& options);

// Loads the parameters of all positions. Returns an error if tensors are missing, unknown or of another
// shape.
Result<std::unique_ptr<LoadedPositionHeads>> load_position_parameters(
    ModelSpec spec, PositionParameters parameters, const std::vector<std::string>& ignorable,
    const Checkpoint& checkpoint, const Model& other, Backend& backend, const LoadOptions& options);

}  // namespace octavo
