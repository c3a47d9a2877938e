// Loads drafters: small networks that propose tokens for a target model from rows of its residual
// (ModelSpec::hidden), for speculative decoding.
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
  std::vector<std::int32_t> tokens = {};  // token id of each logit; empty: logit i belongs to token i
};

// In all functions, `other` is the target model. Its network must outlive the drafter. The functions return
// the errors of Model::load, and an error if dimensions do not fit the target.

// Loads the first multi-token prediction (MTP) layer from a checkpoint of the target. Returns unsupported if
// the architecture or the checkpoint has no such layer.
Result<Drafter> load_predictor(const std::string& path, const Model& other, Backend& backend,
                               const LoadOptions& options);

// Loads an EAGLE head with Llama layers. The folder's tensors must have the names that EAGLE's authors use.
Result<Drafter> load_eagle(const std::string& path, const Model& other, Backend& backend,
                           const LoadOptions& options);

// Loads an EAGLE-3 head in the authors' format or in the format of vLLM's Speculators. Its vocabulary may be
// a subset of the target's.
Result<Drafter> load_eagle3(const std::string& path, const Model& other, Backend& backend,
                            const LoadOptions& options);

// Loads a drafter's weights in the target's format, so that the drafter can use matrices of the target.
Result<> load_beside(const Model& other, const Checkpoint& checkpoint, Backend& backend, LoadOptions options,
                     ParameterList parameters, Model& model);

// Reads an I64 vector. Returns corrupt if the tensor has another type or shape.
Result<std::vector<std::int64_t>> integers_of(const StoredTensor& tensor);

}  // namespace octavo
