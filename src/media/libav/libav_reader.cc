// Reads videos with FFmpeg's libraries. This is a separate shared library (video_file.h), because few
// machines have FFmpeg. It reads only the given bytes, in the listed formats and codecs, and never URLs or
// other files.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
}

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "media/video_file.h"

namespace octavo::media {
namespace {

constexpr const char* kFormats = "mov,matroska,avi,mpegts,ogg,gif,apng";
constexpr const char* kCodecs =
    "h264,hevc,libdav1d,libaom-av1,av1,vp8,vp9,libvpx,libvpx-vp9,mpeg4,mpeg2video,mpegvideo,theora,mjpeg,png,apng,gif,rawvideo";
constexpr int kIoBytes = 1 << 15;
constexpr int kStreamsMax = 16;
constexpr std::int64_t kFramesMax = 1 << 20;
constexpr double kFpsMax = 1000;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* pointer) const {
    free(&pointer);
  }
};
void free_io(AVIOContext** io) {
  av_freep(static_cast<void*>(&(*io)->buffer));
  avio_context_free(io);
}
void free_scaler(SwsContext** scaler) { sws_freeContext(*scaler); }

using Io = std::unique_ptr<AVIOContext, Free<free_io>>;
using Format = std::unique_ptr<AVFormatContext, Free<avformat_close_input>>;
using Codec = std::unique_ptr<AVCodecContext, Free<avcodec_free_context>>;
using Packet = std::unique_ptr<AVPacket, Free<av_packet_free>>;
using Frame = std::unique_ptr<AVFrame, Free<av_frame_free>>;
using Scaler = std::unique_ptr<SwsContext, Free<free_scaler>>;

struct Failure {
  std::string why;
};
[[noreturn]] void fail(std::string why) { throw Failure{std::move(why)}; }
void check(int code, const char* what) {
  if (code >= 0) return;
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  fail(fmt::format("cannot read the video: {}: {}", what, text));
}

// Lets FFmpeg read bytes in memory, as an AVIOContext.
struct Bytes {
  std::span<const std::byte> all;
  std::int64_t at = 0;

  static int read(void* self, std::uint8_t* to, int most) {
    auto& bytes = *static_cast<Bytes*>(self);
    const std::int64_t count = std::min<std::int64_t>(most, std::ssize(bytes.all) - bytes.at);
    if (count <= 0) return AVERROR_EOF;
    std::memcpy(to, bytes.all.data() + bytes.at, static_cast<std::size_t>(count));
    bytes.at += count;
    return static_cast<int>(count);
  }
  static std::int64_t seek(void* self, std::int64_t to, int from) {
    auto& bytes = *static_cast<Bytes*>(self);
    const std::int64_t size = std::ssize(bytes.all);
    if (from == AVSEEK_SIZE) return size;
    const int whence = from & ~AVSEEK_FORCE;
    const std::int64_t position = (whence == SEEK_CUR ? bytes.at : whence == SEEK_END ? size : 0) + to;
    if (position < 0 || position > size) return AVERROR(EINVAL);
    return bytes.at = position;
  }
};

class Input {
 public:
  explicit Input(std::span<const std::byte> file) : bytes_{file} {
    auto* const buffer = static_cast<unsigned char*>(av_malloc(kIoBytes));
    io_.reset(avio_alloc_context(buffer, kIoBytes, 0, &bytes_, Bytes::read, nullptr, Bytes::seek));
    AVFormatContext* context = avformat_alloc_context();
    context->pb = io_.get();
    context->max_streams = kStreamsMax;
    AVDictionary* options = nullptr;
    av_dict_set(&options, "format_whitelist", kFormats, 0);
    av_dict_set(&options, "codec_whitelist", kCodecs, 0);
    av_dict_set(&options, "protocol_whitelist", "none", 0);
    // avformat_open_input frees the context if it fails
    const int opened = avformat_open_input(&context, nullptr, nullptr, &options);
    av_dict_free(&options);
    if (opened < 0)
      fail("the format of the video is unknown: send MP4, MOV, Matroska, WebM, AVI, MPEG-TS, Ogg or GIF");
    format_.reset(context);
    std::vector<AVDictionary*> limits(context->nb_streams, nullptr);
    for (AVDictionary*& limit : limits) av_dict_set_int(&limit, "max_pixels", kFramePixelsMax, 0);
    const int known = avformat_find_stream_info(context, limits.data());
    for (AVDictionary*& limit : limits) av_dict_free(&limit);
    check(known, "its streams");
    const AVCodec* decoder = nullptr;
    const int best = av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0);
    if (best < 0) fail("the file has no video that FFmpeg can decode");
    stream_ = context->streams[best];
    decoder_ = decoder;
  }

  const AVStream& stream() const { return *stream_; }
  const AVCodec* decoder() const { return decoder_; }
  // Reads the next packet of the video stream. Returns false at the end.
  bool next(AVPacket& packet) {
    for (;;) {
      av_packet_unref(&packet);
      const int code = av_read_frame(format_.get(), &packet);
      if (code == AVERROR_EOF) return false;
      check(code, "its packets");
      if (packet.stream_index == stream_->index) return true;
    }
  }
  double seconds() const {
    return format_->duration > 0 ? static_cast<double>(format_->duration) / AV_TIME_BASE : 0;
  }

 private:
  Bytes bytes_;
  Io io_;
  Format format_;
  AVStream* stream_ = nullptr;
  const AVCodec* decoder_ = nullptr;
};

// Returns true if the packet has a visible frame. VP8 also has packets without a visible frame.
bool shown(const AVPacket& packet, AVCodecID codec) {
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return false;
  return codec != AV_CODEC_ID_VP8 || (packet.size > 0 && (packet.data[0] & 0x10) != 0);
}

// Returns the matrix of the stream's rotation, or null.
const std::uint8_t* display_matrix(const AVStream& stream) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 29, 100)  // FFmpeg 6.1; FFmpeg 8 has only this function
  const AVCodecParameters& parameters = *stream.codecpar;
  const AVPacketSideData* data = av_packet_side_data_get(
      parameters.coded_side_data, parameters.nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return data == nullptr ? nullptr : data->data;
#else
  return av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
#endif
}

// Returns the number of clockwise quarter turns that a player applies. Phones store this number in their
// videos.
int quarter_turns(const AVStream& stream) {
  const std::uint8_t* matrix = display_matrix(stream);
  if (matrix == nullptr) return 0;
  const double degrees = av_display_rotation_get(reinterpret_cast<const std::int32_t*>(matrix));
  if (!std::isfinite(degrees)) return 0;
  return (static_cast<int>(std::lround(-degrees / 90)) % 4 + 4) % 4;
}

VideoHead head_of(std::span<const std::byte> file) {
  Input input(file);
  const AVStream& stream = input.stream();
  VideoHead head{.width = stream.codecpar->width, .height = stream.codecpar->height};
  if (head.width < 1 || head.height < 1 || head.width > kFramePixelsMax / head.height)
    fail(fmt::format("the video has {} x {} pixels, but the limit is {}", head.width, head.height,
                     kFramePixelsMax));
  std::int64_t frames = 0;
  const Packet packet(av_packet_alloc());
  while (frames <= kFramesMax && input.next(*packet)) frames += shown(*packet, stream.codecpar->codec_id) ? 1 : 0;
  if (frames == 0 || frames > kFramesMax)
    fail(fmt::format("the video has {} frames, but the limit is {}", frames, kFramesMax));
  head.frames = static_cast<int>(frames);
  head.fps = av_q2d(stream.avg_frame_rate.num > 0 && stream.avg_frame_rate.den > 0 ? stream.avg_frame_rate : AVRational{0, 1});
  if (!(head.fps > 0)) head.fps = input.seconds() > 0 ? head.frames / input.seconds() : 25;
  head.fps = std::min(head.fps, kFpsMax);
  if (quarter_turns(stream) % 2 != 0) std::swap(head.width, head.height);
  return head;
}

Image rotated(const Image& image, int quarters) {
  if (quarters == 0) return image;
  Image out{quarters % 2 == 0 ? image.width : image.height, quarters % 2 == 0 ? image.height : image.width, {}};
  out.pixels.resize(image.pixels.size());
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x, to += 3) {
      const int from_x = quarters == 1 ? y : quarters == 2 ? image.width - 1 - x : image.width - 1 - y;
      const int from_y = quarters == 1 ? image.height - 1 - x : quarters == 2 ? image.height - 1 - y : x;
      std::memcpy(to, image.pixels.data() + std::ptrdiff_t{3} * (std::ptrdiff_t{from_y} * image.width + from_x), 3);
    }
  return out;
}

class Reader {
 public:
  Reader(std::span<const std::byte> file, const VideoHead& head)
      : input_(file), head_(head), quarters_(quarter_turns(input_.stream())), codec_(avcodec_alloc_context3(input_.decoder())) {
    check(avcodec_parameters_to_context(codec_.get(), input_.stream().codecpar), "its parameters");
    codec_->thread_count = 1;
    codec_->max_pixels = kFramePixelsMax;
    check(avcodec_open2(codec_.get(), input_.decoder(), nullptr), "its codec");
  }

  void read(const std::vector<int>& wanted, VideoSink& sink) {
    const Packet packet(av_packet_alloc());
    const Frame frame(av_frame_alloc());
    auto next = wanted.begin();
    int number = 0;
    for (bool more = true; next != wanted.end() && more;) {
      more = input_.next(*packet);
      check(avcodec_send_packet(codec_.get(), more ? packet.get() : nullptr), "its frames");
      while (next != wanted.end() && received(*frame)) {
        if (number++ != *next) continue;
        sink.frame(image_of(*frame));
        ++next;
      }
    }
    if (next != wanted.end()) fail(fmt::format("the video ends after {} of {} frames", number, head_.frames));
  }

 private:
  bool received(AVFrame& frame) {
    const int code = avcodec_receive_frame(codec_.get(), &frame);
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return false;
    check(code, "its frames");
    return true;
  }

  Image image_of(const AVFrame& frame) {
    const bool upright = quarters_ % 2 == 0;
    const int width = upright ? head_.width : head_.height, height = upright ? head_.height : head_.width;
    if (frame.width != width || frame.height != height)
      fail("the size of the video's frames changes, which is not supported");
    SwsContext* const scaler =
        sws_getCachedContext(scaler_.release(), width, height, static_cast<AVPixelFormat>(frame.format), width, height,
                             AV_PIX_FMT_RGB24, SWS_BICUBIC, nullptr, nullptr, nullptr);
    if (scaler == nullptr) fail("the video's pixel format is not supported");
    scaler_.reset(scaler);
    // The scaler writes whole vectors, so it may write after the last pixel of a row.
    const int stride = (3 * width + 63) / 64 * 64;
    rows_.resize(static_cast<std::size_t>(stride) * static_cast<std::size_t>(height) + 64);
    std::uint8_t* const planes[4] = {rows_.data()};
    const int strides[4] = {stride};
    check(sws_scale(scaler, frame.data, frame.linesize, 0, height, planes, strides), "its pixels");
    Image image{width, height, {}};
    image.pixels.reserve(static_cast<std::size_t>(3 * width) * static_cast<std::size_t>(height));
    for (int y = 0; y < height; ++y) {
      const auto row = rows_.begin() + std::ptrdiff_t{y} * stride;
      image.pixels.insert(image.pixels.end(), row, row + 3 * std::ptrdiff_t{width});
    }
    return rotated(image, quarters_);
  }

  Input input_;
  const VideoHead head_;
  const int quarters_;
  Codec codec_;
  Scaler scaler_;
  std::vector<std::uint8_t> rows_;
};

}  // namespace
}  // namespace octavo::media

extern "C" __attribute__((visibility("default"))) bool octavo_read_video(std::span<const std::byte> file,
                                                                         octavo::media::VideoSink& sink, char* why,
                                                                         std::size_t why_size) {
  using namespace octavo::media;
  try {
    av_log_set_level(AV_LOG_QUIET);
    const VideoHead head = head_of(file);
    const std::vector<int> wanted = sink.begin(head);
    if (!wanted.empty()) Reader(file, head).read(wanted, sink);
    return true;
  } catch (const Failure& failure) {
    fmt::format_to_n(why, why_size - 1, "{}", failure.why);
    return false;
  }
}
