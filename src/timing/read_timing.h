// Reads model figures, device figures and timings by name or from a JSON file such as {"weight_bytes": 16e9,
// ...}; its fields are those of the structs.
#pragma once

#include <string>

#include "timing/roofline.h"

namespace octavo {

// The argument is a known name or the path of a file. Errors name the field: unknown, not a number, below 0,
// or missing though required.
Result<ModelFigures> read_model_figures(const std::string& name_or_path);
Result<DeviceFigures> read_device_figures(const std::string& name_or_path);
Result<StepTiming> read_step_timing(const std::string& path);

}  // namespace octavo
