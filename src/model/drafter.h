// Drafters: networks that propose tokens for a target network, from rows of its residual (ModelSpec::hidden).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"

namespace octavo {

struct Drafter {
  std::unique_ptr<Model> model;
  std::vector<std::int32_t> tokens = {};  // token id of each row of the drafter's logits; empty: row i is
                                          // token i
};

// `other` is the target; its network must outlive the drafter. Errors of all functions: those of Model::load;
// dimensions that do not fit the target's.

// Loads the first multi-token prediction layer of a checkpoint of the target. Error (unsupported): the
// architecture, or config.json, has no such layer.
// the architecture has none, or config.json says so.
Result<Drafter> load_predictor(const std::string& path, const Model& other, Backend& backend,
                               const LoadOptions& options);

// Loads an EAGLE head for Llama-like layers: a folder whose tensors have the authors' names.
Result<Drafter> load_eagle(const std::string& path, const Model& other, Backend& backend,
                           const LoadOptions& options);

// Loads an EAGLE-3 head in the authors' format or in Speculators'. Its vocabulary may be a part of the
// target's.
Result<Drafter> load_eagle3(const std::string& path, const Model& other, Backend& backend,
                            const LoadOptions& options);

// For all drafters of `other`: load_weights() in the target's format, so that a drafter can use the target's
// matrices.
Result<> load_beside(const Model& other, const Checkpoint& checkpoint, Backend& backend, LoadOptions options,
                     ParameterList parameters, Model& model);

// The numbers of an I64 vector. Error (corrupt): the tensor is not an I64 vector.
Result<std::vector<std::int64_t>> integers_of(const StoredTensor& tensor);

}  // namespace octavo
