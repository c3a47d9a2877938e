// Frames of video files: MP4, MOV, Matroska, WebM, AVI, MPEG-TS, Ogg and GIF, with H.264, H.265, AV1, VP8, VP9, MPEG-4,
// MPEG-2, Theora, Motion JPEG or PNG in them, by FFmpeg's libraries where they are there (libav/libav_reader.cc: a library
// of its own, loaded with the first video).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "media/image.h"
#include "media/video.h"

namespace octavo::media {

inline constexpr std::int64_t kFramePixelsMax = std::int64_t{16} << 20;
// Of all frames up to the last one that is wanted, since those before it must be decoded, too: nine minutes of 1920 x
// 1080 at 30 frames a second.
inline constexpr std::int64_t kVideoPixelsMax = std::int64_t{32} << 30;

// `choose` says which frames are wanted, ascending; `take` gets each of them, as it comes. Errors, invalid_argument: no
// video in a format above, one that is broken or ends early, changes its size, has larger or more frames than these;
// what `choose` says. unsupported: the libraries are not there.
Result<> decode_video(std::span<const std::byte> file,
                      const std::function<Result<std::vector<int>>(const VideoHead&)>& choose,
                      const std::function<void(Image)>& take);

// What the library asks, and tells.
class VideoSink {
 public:
  virtual ~VideoSink() = default;
  // Nothing: no frames are wanted.
  virtual std::vector<int> begin(const VideoHead& head) = 0;
  virtual void frame(Image image) = 0;
};

// What the library exports. false: `why` says why not.
inline constexpr const char* kReadVideo = "octavo_read_video";
using ReadVideo = bool (*)(std::span<const std::byte> file, VideoSink& sink, char* why, std::size_t why_size);

}  // namespace octavo::media
