// Reads the configuration of transformers' image processor.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "base/error.h"
#include "media/processor_config.h"

namespace octavo {

// Reads preprocessor_config.json of a model's directory or, as transformers 5 writes it, the image_processor
// of processor_config.json. overrides: other values for some fields (vLLM's mm_processor_kwargs). Errors:
// neither file exists; an unsupported type of processor; a field that cannot be overridden; a value out of
// range.
Result<media::ProcessorConfig> read_image_processor(const std::string& directory,
                                                    const boost::json::object& overrides = {});

}  // namespace octavo
