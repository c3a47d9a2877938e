// Selection and size of a video's frames, as in Qwen2VLVideoProcessor and Qwen3VLVideoProcessor of
// transformers.
#pragma once

#include <vector>

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// Properties of a video that are known before decoding.
struct VideoHead {
  int frames = 0;
  double fps = 0;  // frames per second
  int width = 0;
  int height = 0;
};

// Indices of the selected frames, ascending: by the values of server or request, else by the model's rule; at
// most VideoRule::frames_max. Error: no frame is left.
Result<std::vector<int>> chosen_frames(const VideoHead& head, const VideoRule& rule);

// Size of each of `frames` frames. Error: one side is more than 200 times the other.
Result<PartGrid> video_grid(int frames, int width, int height, const VideoRule& rule);

// Number of parts for `frames` frames; the last part may be incomplete.
int video_parts(int frames, const VideoRule& rule);

// Seconds from the video's begin to the middle of each part (VideoRule::stamped).
std::vector<double> part_seconds(const std::vector<int>& frames, double fps, const VideoRule& rule);

}  // namespace octavo::media
