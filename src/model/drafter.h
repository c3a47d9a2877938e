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

// In all functions, `other` is the target; its network must outlive the drafter. They return the errors of
// Model::load, and an error if dimensions do not fit the target's.

// Loads the first multi-token prediction layer of a checkpoint of the target. Returns unsupported if the
// architecture or config.json has no such layer.
Result<Drafter> load_predictor(const std::string& path, const Model& other, Backend& backend,
                               const LoadOptions& options);

// Loads an EAGLE head for Llama-like layers, from a folder whose tensors have the authors' names.
Result<Drafter> load_eagle(const std::string& path, const Model& other, Backend& backend,
                           const LoadOptions& options);

// Loads an EAGLE-3 head in the authors' format or in Speculators'. Its vocabulary may be a part of the
// target's.
Result<Drafter> load_eagle3(const std::string& path, const Model& other, Backend& backend,
                            const LoadOptions& options);

// Loads the weights of a drafter of `other` in the target's format, so that the drafter can use the target's
// matrices.
Result<> load_beside(const Model& other, const Checkpoint& checkpoint, Backend& backend, LoadOptions options,
                     ParameterList parameters, Model& model);

// Returns the numbers of an I64 vector, or corrupt if the tensor is not an I64 vector.
Result<std::vector<std::int64_t>> integers_of(const StoredTensor& tensor);

}  // namespace octavo
