// Reads model figures, device figures and step timings. The source is a known name or a JSON file such as
// {"weight_bytes": 16e9, ...}, whose fields are the members of the struct.
#pragma once

#include <string>

#include "timing/roofline.h"

namespace octavo {

// `name_or_path` is a known name or the path of a file. Returns an error that names the field if a field is
// unknown, not a number or negative, or if a required field is missing.
Result<ModelFigures> read_model_figures(const std::string& name_or_path);
Result<DeviceFigures> read_device_figures(const std::string& name_or_path);
Result<StepTiming> read_step_timing(const std::string& path);

}  // namespace octavo
