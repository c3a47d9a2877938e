// Converts text options of an engine to the types that loading needs. Errors name the field.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"
#include "model/model.h"

namespace octavo {

Result<ModelDType> model_dtype(const std::string& text);
// Converts runner, convert, pooling_type, mmproj and hf_overrides.
Result<Reading> reading_of(const EngineOptions& options);
// Returns the data type of the cache; nullopt for "auto": the data type of the activations.
Result<std::optional<DType>> kv_cache_dtype(const std::string& text);
// Returns the quantisation of unquantised matrices. If the text is one of vLLM's methods, the checkpoint
// must use that method. The suffix "_marlin" is ignored, because it names only a kernel.
Result<Encoding> quantization(const std::string& text, const std::string& model_dir);

}  // namespace octavo
