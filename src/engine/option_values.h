// Converts engine options given as words to the values that loading uses. Errors name the field.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"
#include "model/model.h"

namespace octavo {

Result<ModelDType> model_dtype(const std::string& text);
// Reads runner, convert, pooling_type and hf_overrides.
Result<Reading> reading_of(const EngineOptions& options);
// nullopt: auto, the activations' type.
Result<std::optional<DType>> kv_cache_dtype(const std::string& text);
// Quantization of plain matrices. One of vLLM's methods must be the checkpoint's own; its suffix "_marlin"
// only names a kernel.
Result<Encoding> quantization(const std::string& text, const std::string& model_dir);

}  // namespace octavo
