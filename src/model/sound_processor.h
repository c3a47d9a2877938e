// Reads the configuration of transformers' feature extractor.
#pragma once

#include <string>

#include "base/error.h"
#include "media/log_mel.h"

namespace octavo {

// Errors: no configuration exists (read_processor_file); the feature extractor is not Whisper's; a value is
// out of range.
Result<media::MelConfig> read_sound_processor(const std::string& directory);

}  // namespace octavo
