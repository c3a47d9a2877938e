// Networks that propose what another will say, from rows of the other's residual (ModelSpec::hidden).
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
  std::vector<std::int32_t> tokens = {};  // token of each row of its logits; empty: token i is row i
};

// `other`, and the network in it, must outlive what these load. Errors of all: those of Model::load; numbers
// that do not fit the other's.

// The first layer of multi-token prediction that a checkpoint of the other model has. Error (unsupported):
// the architecture has none, or config.json says so.
Result<Drafter> load_predictor(const std::string& path, const Model& other, Backend& backend,
                               const LoadOptions& options);

// EAGLE's head for Llama-like layers: a folder with tensors as the authors call them.
Result<Drafter> load_eagle(const std::string& path, const Model& other, Backend& backend,
                           const LoadOptions& options);

// EAGLE-3's: the same, or as Speculators writes it. The drafter's vocabulary may be a part of the other's.
Result<Drafter> load_eagle3(const std::string& path, const Model& other, Backend& backend,
                            const LoadOptions& options);

// For all that propose beside `other`: load_weights() in the other's format, so that each can use the other's
// matrices.
Result<> load_beside(const Model& other, const Checkpoint& checkpoint, Backend& backend, LoadOptions options,
                     ParameterList parameters, Model& model);

// The numbers of a vector I64. Error (corrupt): it is none.
Result<std::vector<std::int64_t>> integers_of(const StoredTensor& tensor);

}  // namespace octavo
