// Compares the configurations of an image processor and an image encoder.
#pragma once

#include "base/error.h"
#include "media/processor_config.h"
#include "model/inputs/specs.h"

namespace octavo {

// Returns an error if the image processor's output does not fit the encoder's input. `videos`: the model also
// reads videos.
Result<> check_image_sizes(const media::ProcessorConfig& config, const ImageInput& input, bool videos);

}  // namespace octavo
