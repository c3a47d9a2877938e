// Settings of the image processors of LLaVA-NeXT and LLaVA-OneVision.
#pragma once

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

Result<> read_next_tiles(const Config& config, media::ProcessorConfig& out);
Result<> read_onevision_tiles(const Config& config, media::ProcessorConfig& out);

}  // namespace octavo
