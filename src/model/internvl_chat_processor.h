// Settings of images for InternVL's first format.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// `config` is config.json in `directory`. Returns an error if `overrides` is not empty.
Result<media::ProcessorConfig> read_internvl_chat(const std::string& directory, const Config& config,
                                                  const boost::json::object& overrides);

}  // namespace octavo
