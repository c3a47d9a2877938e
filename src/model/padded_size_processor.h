// Settings of Kimi's image processors.
#pragma once

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// Reads the limits of Kimi's images. Kimi-VL has in_token_limit and a list of two merge sizes; Kimi K2.5 as
// published has an object media_proc_cfg with other names.
Result<> read_padded_size(const Config& file, media::ProcessorConfig& out);

}  // namespace octavo
