// Selects the frames of a video and their size, as Qwen2VLVideoProcessor and Qwen3VLVideoProcessor of
// transformers do.
#pragma once

#include <vector>

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Properties of a video that are known before it is decoded.
struct VideoHead {
  int frames = 0;
  double fps = 0;
  int width = 0;
  int height = 0;
};

// Returns the indices of the selected frames, in ascending order; at most VideoRule::frames_max. `rule` must
// already contain the values that a request or the server sets. Returns an error if no frame is selected.
Result<std::vector<int>> chosen_frames(const VideoHead& head, const VideoRule& rule);

// Returns the size of each frame of a video with `frames` frames. Returns an error if one side is more than
// 200 times the other.
Result<PartGrid> video_grid(int frames, int width, int height, const VideoRule& rule);

// Returns the number of parts for `frames` frames. The last part may have fewer frames.
int video_parts(int frames, const VideoRule& rule);

// Returns the time of the middle of each part, in seconds from the start of the video (VideoRule::stamped).
std::vector<double> part_seconds(const std::vector<int>& frames, double fps, const VideoRule& rule);

}  // namespace octavo::media
