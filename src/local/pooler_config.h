// --pooler-config: vLLM's JSON object that says how texts are read where the model's files say otherwise.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// pooling_type (or seq_pooling_type, tok_pooling_type), use_activation, dimensions, enable_chunked_processing
// with max_embed_len, logit_mean and logit_sigma (or logit_bias and logit_scale, as they were called). Errors
// name the field; those of reward models of steps are refused.
Result<> read_pooler_config(const boost::json::object& config, RuntimeOptions& options);

}  // namespace octavo
