// Reads the configuration of a transformers processor from the file that contains it.
#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// Reads preprocessor_config.json in a model's directory or, if transformers 5 wrote the files, the object
// `part` ("image_processor", "feature_extractor") of processor_config.json. Fields of `overrides` replace
// fields of the file. The result also has spatial_merge_size of processor_config.json (Mistral 3). Returns an
// error if both files are missing, or if the file contains no object.
Result<Config> read_processor_file(const std::string& directory, std::string_view part,
                                   const boost::json::object& overrides = {});

// Reads the video processor from video_preprocessor_config.json, or from `video_processor` in
// processor_config.json. Returns nullopt if neither exists.
Result<std::optional<Config>> read_video_file(const std::string& directory);

inline constexpr std::int64_t kPixelsMax = 1 << 26;  // pixels of an image after resizing

// Reads the minimum and maximum number of pixels of an image or a frame. min_pixels and max_pixels take
// precedence over `size`. If all are missing, `rule` keeps its limits.
Result<> read_pixels(const Config& config, media::AnySizeRule& rule);

inline constexpr Config::Range kEdge{1, 1 << 16};  // side of an image or a tile in pixels

// Reads `size`, {"height", "width"}. Both must be equal.
Result<int> square_size(const Config& config, int absent);

// Reads a number for each channel. If the field is missing, returns `values`.
Result<std::array<float, 3>> read_channels(const Config& config, std::string_view field,
                                           Config::RealRange range, std::array<float, 3> values);

// Return an error if the field is false, or true.
Result<> refuse_false(const Config& config, std::string_view field);
Result<> refuse_true(const Config& config, std::string_view field);

}  // namespace octavo
