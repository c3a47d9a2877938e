// Reads the configuration of transformers' feature extractor.
#pragma once

#include <string>

#include "base/error.h"
#include "media/log_mel.h"

namespace octavo {

// Errors: no configuration (read_processor_file), a feature extractor that is not Whisper's, a value out of
// range.
Result<media::MelConfig> read_sound_processor(const std::string& directory);

}  // namespace octavo
