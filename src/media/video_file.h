// Decodes video files: MP4, MOV, Matroska, WebM, AVI, MPEG-TS, Ogg and GIF, with H.264, H.265, AV1, VP8,
// VP9, MPEG-4, MPEG-2, Theora, Motion JPEG or PNG. Decoding needs FFmpeg's libraries. The code that calls
// FFmpeg (libav/libav_reader.cc) is a separate shared library, which is loaded for the first video.
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
// Maximum number of decoded pixels, in all frames up to the last selected frame, because all frames before
// it must be decoded too. The limit permits about nine minutes of 1920 x 1080 at 30 frames per second.
inline constexpr std::int64_t kVideoPixelsMax = std::int64_t{32} << 30;

// Decodes the selected frames. `choose` returns their indices in ascending order, and `take` receives each
// frame. Returns invalid_argument for an unknown format, a broken or incomplete video, a size that changes,
// or an exceeded limit; unsupported if the libraries are missing; or the error of `choose`.
Result<> decode_video(std::span<const std::byte> file,
                      const std::function<Result<std::vector<int>>(const VideoHead&)>& choose,
                      const std::function<void(Image)>& take);

// Callbacks that the shared library calls.
class VideoSink {
 public:
  virtual ~VideoSink() = default;
  // Returns the indices of the selected frames. If the list is empty, decoding stops.
  virtual std::vector<int> begin(const VideoHead& head) = 0;
  virtual void frame(Image image) = 0;
};

// Name of the function that the shared library exports. If the function returns false, `why` contains the
// reason.
inline constexpr const char* kReadVideo = "octavo_read_video";
using ReadVideo = bool (*)(std::span<const std::byte> file, VideoSink& sink, char* why, std::size_t why_size);

}  // namespace octavo::media
