// Computes the size and cost of a network, and the output of `octavo model inspect`.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/spec.h"
#include "weights/checkpoint.h"

namespace octavo {

struct ParameterCount {
  std::int64_t total = 0;   // all parameters; a tied matrix counts once
  std::int64_t active = 0;  // matrix parameters that one token uses, without embeddings, norms and biases
};
ParameterCount count_parameters(const ModelSpec& spec);

// Minimum memory traffic and arithmetic of a forward pass of one sequence with `tokens` new tokens and
// `context` tokens in total. Every matrix, and every visible cached key and value, is read once. A
// multiply-add counts as two operations. Logits are computed only for the last token.
struct PassCost {
  double bytes = 0;
  double operations = 0;
};
PassCost pass_cost(const ModelSpec& spec, std::int64_t tokens, std::int64_t context,
                   double weight_element_bytes, std::size_t cache_element_bytes);

// Returns the formats of the checkpoint's matrices, largest total size first, such as "int8, bf16".
std::string formats_text(const Checkpoint& checkpoint);

// Describes the model in a directory or GGUF file: architecture, parameters, memory plan, KV cache and
// roofline. Reads only the headers of the checkpoint. Returns the errors of Model::load.
Result<std::string> inspect(const std::string& path, const Backend& backend);

}  // namespace octavo
