#pragma once

#include <boost/json/object.hpp>

#include "local/runtime.h"

namespace octavo {

// Reads vLLM's --media-io-kwargs: how media are decoded for the model's processor. Example: {"video":
// {"num_frames": 16, "fps": 2}}. Images and sounds have no options. Errors name the field.
Result<> read_media_io(const boost::json::object& kwargs, VideoFrames& frames);

}  // namespace octavo
