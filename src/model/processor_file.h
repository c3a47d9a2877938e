// The configuration of a transformers processor, wherever a checkpoint has it.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/config.h"

namespace octavo {

// preprocessor_config.json of a model's directory or, as transformers 5 writes it, what processor_config.json
// says of `part` ("image_processor", "feature_extractor"), with `overrides` in place of what it says. The
// spatial_merge_size that processor_config.json has beside it (Mistral 3) is one of the fields. Error:
// neither file is there, or the one that is has no object in it.
Result<Config> read_processor_file(const std::string& directory, std::string_view part,
                                   const boost::json::object& overrides = {});

// Of videos, from video_preprocessor_config.json or the `video_processor` of processor_config.json, where they are.
Result<std::optional<Config>> read_video_file(const std::string& directory);

}  // namespace octavo
