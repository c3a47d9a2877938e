// --speculative-config: vLLM's JSON object with the options of speculative decoding.
#pragma once

#include <string_view>

#include "base/error.h"
#include "engine/draft/options.h"

namespace octavo {

// Examples.
// {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}; a missing
// lookup limit equals the other one; if both are missing, both are 5. {"method": "suffix"} with
// num_speculative_tokens and the fields suffix_decoding_*. {"model": "models/demo-draft",
// "num_speculative_tokens": 4}: the method is draft_model. {"method": "mtp", "num_speculative_tokens": 1}.
// For "eagle", "eagle3", "medusa" and "mlp_speculator", "model" is the folder of the heads. Errors name the
// field.
Result<SpeculativeOptions> parse_speculative_config(std::string_view json);

}  // namespace octavo
