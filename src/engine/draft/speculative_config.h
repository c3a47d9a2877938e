// Reads --speculative-config, vLLM's JSON object with the options of speculative decoding.
#pragma once

#include <string_view>

#include "base/error.h"
#include "engine/draft/options.h"

namespace octavo {

// Examples:
//   {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
//   {"method": "suffix", "num_speculative_tokens": 8, "suffix_decoding_max_tree_depth": 24}
//   {"model": "models/demo-draft", "num_speculative_tokens": 4}
//   {"method": "mtp", "num_speculative_tokens": 1}
//
// For ngram, a missing lookup limit equals the other one; if both are missing, both are 5. Without
// "method", the method is draft_model. For "eagle", "eagle3", "medusa" and "mlp_speculator", "model" is the
// folder of the heads. Returns an error that names the field.
Result<SpeculativeOptions> parse_speculative_config(std::string_view json);

}  // namespace octavo
