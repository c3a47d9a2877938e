// Reads the image settings of LFM2-VL.
#pragma once

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// The limits are numbers of tokens; a token has encoder_patch_size times downsample_factor pixels on each
// side.
Result<> read_split_tiles(const Config& config, media::ProcessorConfig& out);

}  // namespace octavo
