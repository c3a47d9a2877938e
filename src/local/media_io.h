#pragma once

#include <boost/json/object.hpp>

#include "local/runtime.h"

namespace octavo {

// Reads vLLM's --media-io-kwargs, options for decoding media. Example: {"video": {"num_frames": 16, "fps":
// 2}}. Images and audio have no options. Errors name the field.
Result<> read_media_io(const boost::json::object& kwargs, VideoFrames& frames);

}  // namespace octavo
