// Decodes video files: MP4, MOV, Matroska, WebM, AVI, MPEG-TS, Ogg and GIF, with H.264, H.265, AV1, VP8, VP9,
// MPEG-4, MPEG-2, Theora, Motion JPEG or PNG. Needs FFmpeg's libraries. libav/libav_reader.cc, which uses
// them, is a shared library that is loaded for the first video.
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
// Largest number of decoded pixels, in all frames up to the last selected one (earlier frames must be decoded
// too). Enough for about nine minutes of 1920 x 1080 at 30 frames per second.
inline constexpr std::int64_t kVideoPixelsMax = std::int64_t{32} << 30;

// choose: returns the selected frames, ascending. take: receives each of them. Errors: invalid_argument for
// an unknown format, a broken or incomplete video, a size that changes, or a limit exceeded; any error of
// `choose`; unsupported if the libraries are missing.
Result<> decode_video(std::span<const std::byte> file,
                      const std::function<Result<std::vector<int>>(const VideoHead&)>& choose,
                      const std::function<void(Image)>& take);

// Callbacks for the shared library.
class VideoSink {
 public:
  virtual ~VideoSink() = default;
  // Returns the selected frames. Decoding stops if the list is empty.
  virtual std::vector<int> begin(const VideoHead& head) = 0;
  virtual void frame(Image image) = 0;
};

// Name of the function that the shared library exports. If it returns false, `why` is the reason.
inline constexpr const char* kReadVideo = "octavo_read_video";
using ReadVideo = bool (*)(std::span<const std::byte> file, VideoSink& sink, char* why, std::size_t why_size);

}  // namespace octavo::media
