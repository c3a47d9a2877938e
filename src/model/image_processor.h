// Reads the configuration of an image processor of the transformers library: size, crop, mean and so on.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "base/error.h"
#include "media/processor_config.h"

namespace octavo {

// Reads preprocessor_config.json in a model's directory or, if transformers 5 wrote the files,
// `image_processor` in processor_config.json. Fields of `overrides` (vLLM's mm_processor_kwargs) replace
// fields of the file. Returns an error if neither file exists, if the type of processor is not supported, if
// a field cannot be overridden, or if a value is out of range. If `mmproj` is not empty, it is the file with
// the encoder of the GGUF file `directory`, and the configuration is made from both files.
Result<media::ProcessorConfig> read_image_processor(const std::string& directory,
                                                    const boost::json::object& overrides = {},
                                                    const std::string& mmproj = {});

}  // namespace octavo
