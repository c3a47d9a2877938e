// Engine options that are words, as the values that loading takes. Errors name the field.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"
#include "model/model.h"

namespace octavo {

Result<ModelDType> model_dtype(const std::string& text);
// runner, convert, pooling_type and hf_overrides.
Result<Reading> reading_of(const EngineOptions& options);
// nullopt: auto, the format of the activations.
Result<std::optional<DType>> kv_cache_dtype(const std::string& text);
// What to make of plain matrices. A method of vLLM's (its "_marlin" names a kernel) must be the checkpoint's
// own.
Result<Encoding> quantization(const std::string& text, const std::string& model_dir);

}  // namespace octavo
