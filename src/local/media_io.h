// vLLM's --media-io-kwargs: what is taken of media before a model's processor sees them.
#pragma once

#include <boost/json/object.hpp>

#include "local/runtime.h"

namespace octavo {

// {"video": {"num_frames": 16, "fps": 2}}; images and sounds have nothing to say. Errors name the field.
Result<> read_media_io(const boost::json::object& kwargs, VideoFrames& frames);

}  // namespace octavo
