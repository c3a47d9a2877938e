// Settings of images for Pixtral and Mistral 3 in Mistral's own format.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// `config` is params.json (params_file.h). Returns an error if `overrides` is not empty.
Result<media::ProcessorConfig> read_own_images(const Config& config, const boost::json::object& overrides);

}  // namespace octavo
