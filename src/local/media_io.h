// vLLM's --media-io-kwargs: how media are read before the model's processor gets them.
#pragma once

#include <boost/json/object.hpp>

#include "local/runtime.h"

namespace octavo {

// Example: {"video": {"num_frames": 16, "fps": 2}}. Images and sounds have no options. Errors name the
// field.
Result<> read_media_io(const boost::json::object& kwargs, VideoFrames& frames);

}  // namespace octavo
