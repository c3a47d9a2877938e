// Reads the configuration of transformers' video processor.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// Reads the rule from video_preprocessor_config.json; if missing, from `video_processor` in
// processor_config.json; if this is missing, too, from the fields of `images`, as in older checkpoints
// (Qwen2-VL). Returns an error if the processor has another type, or another mean or standard deviation than
// `images`. Errors name the file and the field.
Result<media::VideoRule> read_video_processor(const std::string& directory, const Config& images,
                                              const media::ProcessorConfig& image_config);

}  // namespace octavo
