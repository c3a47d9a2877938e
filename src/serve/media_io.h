// vLLM's options for decoding media: the flag --media-io-kwargs, and the field media_io_kwargs of a request.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "media/processor_config.h"

namespace octavo {

// nullopt: the option is not given.
struct MediaIo {
  std::optional<int> frames{};  // number of frames of a video, at equal distances; 0: all frames
  // maximum number of frames per second; if the video is a list of images, the rate of that list
  std::optional<double> fps{};
  media::FrameList list{};                    // for videos that are lists of images
  std::optional<media::Colour> background{};  // colour behind the transparent pixels of images
};

// Reads the options. Example: {"video": {"num_frames": 16}, "image": {"rgba_background_color": [0, 0, 0]}}.
// `path` is the prefix of the fields in errors. Adds the names of options without effect to `ignored`.
Result<> read_media_io(const boost::json::object& kwargs, const std::string& path, MediaIo& out,
                       std::vector<std::string>& ignored);
// The same for a flag: options without effect are errors.
Result<> read_media_io_flag(const boost::json::object& kwargs, MediaIo& out);

// Replaces the settings of the model by the given options. If either `frames` or `fps` is given, it replaces
// both.
void apply(const MediaIo& given, media::ProcessorConfig& config);

}  // namespace octavo
