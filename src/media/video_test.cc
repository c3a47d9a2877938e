#include "media/video.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/resize.h"
#include "media/testing/golden.h"
#include "media/video_file.h"

namespace octavo::media {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const VideoRule kQwen2{.size = {.unit = 12, .pixels_min = 12 * 12 * 6, .pixels_max = 12 * 12 * 12}};
const VideoRule kQwen3{.size = {.unit = 12, .pixels_min = 12 * 12 * 24, .pixels_max = 12 * 12 * 48}, .stamped = true, .samples = true};

std::vector<int> frames(int total, double fps, const VideoRule& rule) {
  return chosen_frames({.frames = total, .fps = fps, .width = 8, .height = 8}, rule).value();
}

// Expected values: sample_frames() of transformers' processors.
TEST(Video, FramesAreThoseOfTransformers) {
  VideoRule two = kQwen2;
  two.samples = true;
  two.fps = 1;
  // At one frame per second, 5 seconds give 4 frames, because the number must be a multiple of
  // VideoRule::frames.
  EXPECT_THAT(frames(75, 15, two), ElementsAre(0, 18, 37, 56));
  two.num_frames = 7;
  // Halves are rounded to even numbers.
  EXPECT_THAT(frames(20, 15, two), ElementsAre(0, 2, 5, 7, 10, 12, 15, 17));
  VideoRule three = kQwen3;
  EXPECT_THAT(frames(75, 15, three), ElementsAre(0, 8, 16, 25, 33, 41, 49, 58, 66, 74));
  EXPECT_THAT(frames(3, 30, three), ElementsAre(0, 1, 2));
  three.num_frames = 2;
  EXPECT_THAT(frames(75, 15, three), ElementsAre(0, 74));
}

// Expected values: the frames that vLLM loads.
TEST(Video, FramesOfTheLoaderAreSpread) {
  VideoRule rule = kQwen2;
  rule.loader_frames = 5;
  EXPECT_THAT(frames(12, 4, rule), ElementsAre(0, 2, 5, 8, 11));
  EXPECT_THAT(frames(3, 4, rule), ElementsAre(0, 1, 2));
  rule.loader_fps = 1;
  EXPECT_THAT(frames(12, 4, rule), ElementsAre(0, 5, 11));
  rule.loader_frames = 0;
  rule.loader_fps = 0;
  EXPECT_EQ(frames(2000, 30, rule).size(), 768U);
}

TEST(Video, OneFrameIsNoPart) {
  VideoRule rule = kQwen2;
  rule.samples = true;
  EXPECT_THAT(chosen_frames({.frames = 1, .fps = 1, .width = 8, .height = 8}, rule).error().message,
              HasSubstr("but this model needs at least"));
}

TEST(Video, TimesAreBetweenThoseOfAPartsFrames) {
  EXPECT_THAT(part_seconds({0, 8, 16, 25, 33}, 15, kQwen3), ElementsAre(4.0 / 15, 20.5 / 15, 33.0 / 15));
}

// Scaled frames are bit-identical to the golden frames, which have torch's rounding.
TEST(Video, PixelsAreThoseOfTransformers) {
  for (const auto& [name, rule] : {std::pair("qwen2_vl", &kQwen2), std::pair("qwen3_vl", &kQwen3)}) {
    SCOPED_TRACE(name);
    const VisionGolden golden(name, kVisionRoot, kVideoFile);
    const std::vector<Image> sent = golden.tiles("decoded.video"), expected = golden.tiles("frames.video");
    const PartGrid grid = video_grid(static_cast<int>(sent.size()), sent[0].width, sent[0].height, *rule).value();
    ASSERT_EQ(sent.size(), expected.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const Image frame = resize_as_torch(sent[i], grid.width, grid.height, Filter::bicubic);
      EXPECT_EQ(frame.width, expected[i].width);
      EXPECT_EQ(frame.pixels, expected[i].pixels) << i;
    }
  }
}

#ifdef OCTAVO_VIDEO_FILES

struct Read {
  VideoHead head;
  std::vector<Image> frames;
  std::string error = {};
};
Read read(const std::string& bytes, std::vector<int> wanted) {
  Read out;
  const auto choose = [&](const VideoHead& head) -> Result<std::vector<int>> {
    out.head = head;
    return wanted;
  };
  const auto done = decode_video(std::as_bytes(std::span(bytes)), choose, [&](Image frame) { out.frames.push_back(std::move(frame)); });
  if (!done) out.error = done.error().message;
  return out;
}
std::string file(const std::string& name) { return file_bytes("tests/data/video/" + name); }

// The video has ten frames per second. Frame i has one colour, in which red is 40 * i.
TEST(VideoFile, FramesComeInOrder) {
  for (const char* name : {"h264.mp4", "vp8.webm", "mjpeg.avi", "frames.gif"}) {
    SCOPED_TRACE(name);
    const Read all = read(file(name), {1, 3, 5});
    ASSERT_EQ(all.error, "");
    EXPECT_EQ(all.head.frames, 6);
    EXPECT_NEAR(all.head.fps, 10, 0.01);
    EXPECT_EQ(all.head.width, 48);
    EXPECT_EQ(all.head.height, 32);
    ASSERT_EQ(all.frames.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i)
      // The tolerance is large, because a GIF has few colours.
      EXPECT_NEAR(all.frames[i].pixels[0], 40 * (2 * static_cast<int>(i) + 1), 19) << i;
  }
}

TEST(VideoFile, WhatAPhoneTurnedIsTurned) {
  const Read upright = read(file("turned.mp4"), {0});
  ASSERT_EQ(upright.error, "");
  EXPECT_EQ(upright.head.width, 32);
  EXPECT_EQ(upright.head.height, 48);
  EXPECT_EQ(upright.frames[0].width, 32);
  EXPECT_EQ(upright.frames[0].height, 48);
  // The left half of the frame in the file is bright. A counter-clockwise quarter turn moves this half to
  // the bottom.
  EXPECT_LT(upright.frames[0].pixels.front(), 60);
  EXPECT_GT(upright.frames[0].pixels.back(), 180);
}

TEST(VideoFile, WhatIsNoVideoIsAnError) {
  const std::string whole = file("h264.mp4");
  EXPECT_THAT(read("", {0}).error, HasSubstr("the format of the video is unknown"));
  EXPECT_THAT(read(std::string(1000, 'x'), {0}).error, HasSubstr("the format of the video is unknown"));
  EXPECT_NE(read(whole.substr(0, whole.size() / 2), {5}).error, "");
  EXPECT_THAT(read(whole, {9}).error, HasSubstr("ends after 6 of 6 frames"));
  // Playlists name other files, so they are not supported.
  EXPECT_THAT(read("ffconcat version 1.0\nfile /etc/passwd\n", {0}).error,
              HasSubstr("the format of the video is unknown"));
  EXPECT_THAT(read("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", {0}).error,
              HasSubstr("the format of the video is unknown"));
}

TEST(VideoFile, NoMoreIsDecodedThanTheLimit) {
  const auto far = [](const VideoHead&) -> Result<std::vector<int>> { return std::vector<int>{1 << 30}; };
  const std::string bytes = file("h264.mp4");
  const auto read = decode_video(std::as_bytes(std::span(bytes)), far, [](const Image&) {});
  EXPECT_THAT(read.error().message, HasSubstr("but at most"));
}

#endif

}  // namespace
}  // namespace octavo::media
