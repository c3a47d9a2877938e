#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// Reads --pooler-config, vLLM's JSON object. Its pooling options override those in the model's files:
// pooling_type (or seq_pooling_type, tok_pooling_type), use_activation, dimensions,
// enable_chunked_processing with max_embed_len, logit_mean and logit_sigma (old names logit_bias and
// logit_scale). Fields for step reward models are not supported. Errors name the field.
Result<> read_pooler_config(const boost::json::object& config, RuntimeOptions& options);

}  // namespace octavo
