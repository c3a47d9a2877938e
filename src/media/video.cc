#include "media/video.h"

#include <algorithm>
#include <cmath>

#include "media/any_size.h"

namespace octavo::media {
namespace {

// Returns numpy.linspace(0, total - 1, count) as integers, rounded or truncated.
std::vector<int> spread(int total, int count, bool round) {
  std::vector<int> frames;
  const double step = count > 1 ? static_cast<double>(total - 1) / (count - 1) : 0;
  for (int i = 0; i < count; ++i) {
    const double at = i + 1 < count || count == 1 ? i * step : total - 1;
    frames.push_back(static_cast<int>(round ? std::nearbyint(at) : at));
  }
  return frames;
}

// Selects frames by Qwen2-VL's rule: divides the video into equal shares and selects the first frame of
// each share. The number of frames is a multiple of rule.frames.
std::vector<int> first_of_shares(int total, double wanted, const VideoRule& rule) {
  const int count = static_cast<int>(wanted) / rule.frames * rule.frames;
  std::vector<int> frames;
  const double share = static_cast<double>(total) / std::max(1, count);
  for (int i = 0; i < count && i * share < total; ++i) frames.push_back(static_cast<int>(i * share));
  return frames;
}

std::vector<int> by_model(const VideoHead& head, const VideoRule& rule) {
  const int total = head.frames;
  const double most = std::min(rule.frames_max, total);
  const double by_fps = std::min(std::max(total / head.fps * rule.fps, static_cast<double>(rule.frames_min)), most);
  if (!rule.stamped) {
    const double count = rule.num_frames > 0 ? std::nearbyint(static_cast<double>(rule.num_frames) / rule.frames) * rule.frames
                                             : std::min(by_fps, std::floor(most / rule.frames) * rule.frames);
    return first_of_shares(total, std::min(count, most), rule);
  }
  const int count = rule.num_frames > 0 ? std::min(rule.num_frames, static_cast<int>(most)) : static_cast<int>(by_fps);
  return spread(total, count, true);
}

// Selects frames by vLLM's rule.
std::vector<int> by_loader(const VideoHead& head, const VideoRule& rule) {
  int count = std::min(head.frames, rule.frames_max);
  if (rule.loader_frames > 0) count = std::min(count, rule.loader_frames);
  if (rule.loader_fps > 0) count = std::min(count, static_cast<int>(head.frames / head.fps * rule.loader_fps));
  return spread(head.frames, std::max(1, count), false);
}

}  // namespace

Result<std::vector<int>> chosen_frames(const VideoHead& head, const VideoRule& rule) {
  if (head.frames < 1 || !(head.fps > 0))
    return invalid("", "the video has {} frames at {} frames per second", head.frames, head.fps);
  std::vector<int> frames = rule.samples ? by_model(head, rule) : by_loader(head, rule);
  if (frames.empty())
    return invalid("", "the video has {} frames, but this model needs at least {}", head.frames, rule.frames);
  return frames;
}

Result<PartGrid> video_grid(int frames, int width, int height, const VideoRule& rule) {
  if (!rule.stamped) return any_size_grid(width, height, rule.size);
  // The size limits apply to all frames together. If a side is shorter than a unit, the frame is first
  // enlarged until this side has one unit.
  const double unit = rule.size.unit, least = std::min(width, height);
  if (least < unit) {
    const double scale = unit / least;
    TRY_VOID(check_ratio(width, height));
    width = static_cast<int>(width * scale);
    height = static_cast<int>(height * scale);
  }
  AnySizeRule each = rule.size;
  each.weight = std::max(frames, rule.frames);
  each.rounded_weight = static_cast<int>(std::nearbyint(static_cast<double>(each.weight) / rule.frames)) * rule.frames;
  return any_size_grid(width, height, each);
}

int video_parts(int frames, const VideoRule& rule) { return (frames + rule.frames - 1) / rule.frames; }

std::vector<double> part_seconds(const std::vector<int>& frames, double fps, const VideoRule& rule) {
  std::vector<double> seconds;
  for (int first = 0; first < std::ssize(frames); first += rule.frames) {
    const auto last = std::min<std::ptrdiff_t>(first + rule.frames, std::ssize(frames)) - 1;
    seconds.push_back((frames[static_cast<std::size_t>(first)] / fps + frames[static_cast<std::size_t>(last)] / fps) / 2);
  }
  return seconds;
}

}  // namespace octavo::media
