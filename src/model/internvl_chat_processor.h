// Settings of images for InternVL's first format and similar ones.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// Returns whether models of this type have their settings of images in config.json.
bool has_chat_images(std::string_view model_type);

// `config` is config.json in `directory`. Returns an error if `overrides` is not empty.
Result<media::ProcessorConfig> read_internvl_chat(const std::string& directory, const Config& config,
                                                  std::string_view model_type,
                                                  const boost::json::object& overrides);

}  // namespace octavo
