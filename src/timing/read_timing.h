// Figures and timings from a name or a JSON file: {"weight_bytes": 16e9, ...}, the fields of the structs.
#pragma once

#include <string>

#include "timing/roofline.h"

namespace octavo {

// Each takes a known name, or the path of a file. Errors name the field: one that is unknown, that is no
// number, that is below 0, or without which nothing can be told.
Result<ModelFigures> read_model_figures(const std::string& name_or_path);
Result<DeviceFigures> read_device_figures(const std::string& name_or_path);
Result<StepTiming> read_step_timing(const std::string& path);

}  // namespace octavo
