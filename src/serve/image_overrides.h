// Image options of one request.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "media/processor_config.h"

namespace octavo {

// The rule with a request's mm_processor_kwargs: min_pixels and max_pixels (or size with shortest_edge and
// longest_edge) for images of any size; max_patches for tiles by shape; dynamic_hd for padded tiles;
// size.longest_edge and do_image_splitting for other tiles; size.longest_edge for Pixtral; num_frames or fps
// for videos. No field makes an image larger, or gives it more tiles, than the server's setting. Errors name
// the field: unknown for this model, or out of range.
Result<media::ProcessorConfig> with_overrides(media::ProcessorConfig config,
                                              const boost::json::object& overrides);

}  // namespace octavo
