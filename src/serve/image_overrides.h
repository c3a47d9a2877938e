// Image options that a request can change.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "media/processor_config.h"

namespace octavo {

// Applies a request's mm_processor_kwargs to the image settings. Which fields are allowed depends on how the
// model divides images.
// - Variable size: min_pixels and max_pixels, or `size` with shortest_edge and longest_edge.
// - Tiles by aspect ratio: max_patches.
// - Padded tiles: dynamic_hd.
// - Other tiles: size.longest_edge and do_image_splitting.
// - Pixtral: size.longest_edge.
// - Videos: num_frames or fps.
// A field can lower the server's limits but not raise them. Returns an error with the field's name if the
// field is unknown for this model or out of range.
Result<media::ProcessorConfig> with_overrides(media::ProcessorConfig config,
                                              const boost::json::object& overrides);

}  // namespace octavo
