// Reads the configuration of a feature extractor (for audio) of the transformers library.
#pragma once

#include <string>

#include "base/error.h"
#include "media/log_mel.h"

namespace octavo {

// Returns an error if no configuration exists (read_processor_file), if the feature extractor is not
// Whisper's, or if a value is out of range.
Result<media::MelConfig> read_sound_processor(const std::string& directory);

}  // namespace octavo
