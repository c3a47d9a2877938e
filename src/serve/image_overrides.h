// How one request wants its images prepared.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "media/processor_config.h"

namespace octavo {

// The rule with the fields of a request's mm_processor_kwargs: min_pixels and max_pixels (or size with
// shortest_edge and longest_edge) of images of any size, max_patches of tiles by shape, dynamic_hd of padded ones, size.longest_edge and
// do_image_splitting of other tiles, size.longest_edge of Pixtral's images; num_frames or fps of videos. None makes an image larger, or
// more tiles of it, than the server does. Errors name the field: one that this model's images have not, a
// value out of its range.
Result<media::ProcessorConfig> with_overrides(media::ProcessorConfig config,
                                              const boost::json::object& overrides);

}  // namespace octavo
