// Which frames of a video a model sees, and how large: as Qwen2VLVideoProcessor and Qwen3VLVideoProcessor of
// transformers have it.
#pragma once

#include <vector>

#include "base/error.h"
#include "media/image_parts.h"
#include "media/processor_config.h"

namespace octavo::media {

// What a video is before it is decoded.
struct VideoHead {
  int frames = 0;
  double fps = 0;  // frames a second
  int width = 0;
  int height = 0;
};

// The numbers of the frames, ascending: by what the server or the request says, else by the model's rule; at most
// VideoRule::frames_max. Error: none are left.
Result<std::vector<int>> chosen_frames(const VideoHead& head, const VideoRule& rule);

// The size of each of so many frames. Error: one side is more than 200 times the other.
Result<PartGrid> video_grid(int frames, int width, int height, const VideoRule& rule);

// How many parts so many frames make, the last of which may be short of some.
int video_parts(int frames, const VideoRule& rule);

// Seconds from the video's begin to the middle of each part (VideoRule::stamped).
std::vector<double> part_seconds(const std::vector<int>& frames, double fps, const VideoRule& rule);

}  // namespace octavo::media
