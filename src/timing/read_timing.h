// Reads model figures, device figures and timings, by a known name or from a JSON file such as
// {"weight_bytes": 16e9, ...}. The file's fields are the struct's members.
#pragma once

#include <string>

#include "timing/roofline.h"

namespace octavo {

// name_or_path: a known name, or the path of a file. Errors name the field that is unknown, not a number,
// below 0, or required but missing.
Result<ModelFigures> read_model_figures(const std::string& name_or_path);
Result<DeviceFigures> read_device_figures(const std::string& name_or_path);
Result<StepTiming> read_step_timing(const std::string& path);

}  // namespace octavo
