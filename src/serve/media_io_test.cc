#include "serve/media_io.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo {
namespace {

boost::json::object options_of(const char* json) { return boost::json::parse(json).as_object(); }

std::string wrong_field(const char* json) {
  MediaIo io;
  std::vector<std::string> ignored;
  const auto read = read_media_io(options_of(json), "media_io_kwargs.", io, ignored);
  return read ? "none" : read.error().field;
}

TEST(MediaIo, OptionsOfARequestReplaceThoseOfTheServer) {
  media::ProcessorConfig config{.rule = media::SquareRule{}};
  config.video.emplace();
  MediaIo server;
  ASSERT_TRUE(
      read_media_io_flag(options_of(R"({"video": {"num_frames": 16, "fps": 2}})"), server).has_value());
  apply(server, config);
  EXPECT_EQ(config.video->loader_frames, 16);
  EXPECT_EQ(config.video->loader_fps, 2);
  MediaIo request;
  std::vector<std::string> ignored;
  ASSERT_TRUE(
      read_media_io(options_of(R"({"video": {"num_frames": -1, "video_backend": "opencv"}, "audio": {"a": 1},
                                           "image": {"rgba_background_color": [1, 2, 3]}, "film": {}})"),
                    "media_io_kwargs.", request, ignored)
          .has_value());
  EXPECT_EQ(ignored,
            (std::vector<std::string>{"media_io_kwargs.audio.a", "media_io_kwargs.video.video_backend",
                                      "media_io_kwargs.film"}));
  apply(request, config);
  EXPECT_EQ(config.video->loader_frames, 0);  // all
  EXPECT_EQ(config.video->loader_fps, 0);
  EXPECT_EQ(config.background, (media::Colour{1, 2, 3}));
}

TEST(MediaIo, ErrorsNameTheField) {
  for (const char* colour : {"[0, 0]", "[0, 0, 256]", "[0, 0, -1]", "[0, 0, 0, 0]", "\"red\""})
    EXPECT_EQ(wrong_field(fmt::format(R"({{"image": {{"rgba_background_color": {}}}}})", colour).c_str()),
              "media_io_kwargs.image.rgba_background_color")
        << colour;
  EXPECT_EQ(wrong_field(R"({"image": {"image_mode": "CMYK"}})"), "media_io_kwargs.image.image_mode");
  EXPECT_EQ(wrong_field(R"({"video": {"num_frames": 4097}})"), "media_io_kwargs.video.num_frames");
  EXPECT_EQ(wrong_field(R"({"video": {"fps": -1}})"), "media_io_kwargs.video.fps");
  EXPECT_EQ(wrong_field(R"({"video": {"total_num_frames": 0}})"), "media_io_kwargs.video.total_num_frames");
  EXPECT_EQ(wrong_field(R"({"video": 7})"), "media_io_kwargs.video");
}

TEST(MediaIo, TheFlagRefusesOptionsWithoutEffect) {
  MediaIo io;
  EXPECT_EQ(read_media_io_flag(options_of(R"({"video": {"video_backend": "opencv"}})"), io).error().field,
            "video.video_backend");
  EXPECT_EQ(read_media_io_flag(options_of(R"({"video": {"total_num_frames": 9}})"), io).error().field,
            "video");
}

}  // namespace
}  // namespace octavo
