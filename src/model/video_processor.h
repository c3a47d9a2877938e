// Reads the configuration of transformers' video processor.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// From video_preprocessor_config.json, else the `video_processor` of processor_config.json, else the fields of `images`,
// where older checkpoints have them (Qwen2-VL). Errors name the file and the field; a processor of another kind, other
// mean and standard deviation than `images` has.
Result<media::VideoRule> read_video_processor(const std::string& directory, const Config& images,
                                              const media::ProcessorConfig& image_config);

}  // namespace octavo
