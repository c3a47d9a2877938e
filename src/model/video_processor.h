// Reads the configuration of transformers' video processor.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// Reads the rule from video_preprocessor_config.json, else from `video_processor` in processor_config.json,
// else from `video_processor` in `images` (GGUF files), else from the other fields of `images`, as in older
// checkpoints (Qwen2-VL). Returns an error if the processor has
// another type, or if its mean or standard deviation differs from `images`. Errors name the file and the
// field.
Result<media::VideoRule> read_video_processor(const std::string& directory, const Config& images,
                                              const media::ProcessorConfig& image_config);

}  // namespace octavo
