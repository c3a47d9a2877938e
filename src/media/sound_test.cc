#include "media/sound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "media/testing/golden.h"

// libsndfile 1.2.0 leaks 6 kB for every Ogg file with broken headers.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libvorbis"; }

namespace octavo::media {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string sound_file(const std::string& name) { return file_bytes(kSoundRoot + name); }

Result<std::vector<float>> decode(std::string_view file, int rate = 16000, const SoundLimits& limits = {}) {
  return decode_sound(std::as_bytes(std::span(file)), rate, limits);
}

std::string error(std::string_view file, const SoundLimits& limits = {}) {
  const auto sound = decode(file, 16000, limits);
  if (sound) return "";
  EXPECT_EQ(sound.error().code, ErrorCode::invalid_argument);
  return sound.error().message;
}

// Returns a WAV file with this header and data. Format 1 has integers, format 3 has floats.
std::string wave(std::uint16_t format, std::uint16_t channels, std::uint32_t rate, std::uint16_t bits,
                 const std::string& data) {
  std::string out = "RIFF....WAVEfmt ";
  const auto put = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(std::uint32_t{16});
  put(format);
  put(channels);
  put(rate);
  put(static_cast<std::uint32_t>(rate * channels * bits / 8));
  put(static_cast<std::uint16_t>(channels * bits / 8));
  put(bits);
  out += "data";
  put(static_cast<std::uint32_t>(data.size()));
  out += data;
  const auto size = static_cast<std::uint32_t>(out.size() - 8);
  std::memcpy(out.data() + 4, &size, sizeof size);
  return out;
}

double rms(const std::vector<float>& samples) {
  double sum = 0;
  for (const float sample : samples) sum += double{sample} * sample;
  return std::sqrt(sum / static_cast<double>(samples.size()));
}

TEST(Sound, SamplesOfItsOwnRateAreAsTheyAre) {
  const std::string file = sound_file("chirp.wav");
  const std::vector<float> sound = decode(file).value();
  ASSERT_EQ(sound.size(), 20800U);
  for (std::size_t i = 0; i < sound.size(); ++i) {
    std::int16_t stored = 0;
    std::memcpy(&stored, file.data() + 44 + 2 * i, sizeof stored);
    ASSERT_EQ(sound[i], static_cast<float>(stored) / 32768) << i;
  }
}

TEST(Sound, ChannelsBecomeTheirMean) {
  const std::int16_t values[] = {100, 300, -2000, 1000};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  EXPECT_THAT(decode(wave(1, 2, 16000, 16, data)).value(), ElementsAre(200.0F / 32768, -500.0F / 32768));
}

// Every file contains the same quarter of a second. The sampling rate is 44.1 kHz (Opus: 48 kHz).
TEST(Sound, EveryFormatIsReadAndResampled) {
  const std::vector<float> stereo = decode(sound_file("stereo.flac")).value();
  EXPECT_EQ(stereo.size(), 4000U);
  for (const char* name : {"short.ogg", "short.opus", "short.mp3"}) {
    const auto sound = decode(sound_file(name));
    ASSERT_TRUE(sound) << name << ": " << sound.error().message;
    EXPECT_NEAR(static_cast<double>(sound->size()), 4000, 900) << name;  // some formats add silence
    EXPECT_NEAR(rms(*sound), rms(stereo) / 0.75, 0.03) << name;
  }
}

TEST(Sound, WhatIsNoSoundIsRefused) {
  EXPECT_THAT(error(""), HasSubstr("Invalid or corrupted audio data"));
  EXPECT_THAT(error("<svg></svg>"), HasSubstr("Invalid or corrupted audio data"));
  EXPECT_THAT(error("RIFF....WEBPVP8 "), HasSubstr("Invalid or corrupted audio data"));
  EXPECT_THAT(error("RIFF....WAVEnothing"), HasSubstr("the sound is damaged"));
  EXPECT_THAT(error(sound_file("short.ogg").substr(0, 60)), HasSubstr("the sound is damaged"));
  EXPECT_THAT(error(wave(1, 1, 16000, 16, "")), HasSubstr("no samples"));
  EXPECT_THAT(error(wave(1, 9, 16000, 16, std::string(36, '\1'))), HasSubstr("9 channels"));
  EXPECT_THAT(error(wave(1, 1, 400'000, 16, std::string(4, '\1'))), HasSubstr("400000 samples per second"));
  const float values[] = {0, std::nanf(""), 1};
  EXPECT_THAT(error(wave(3, 1, 16000, 32, std::string(reinterpret_cast<const char*>(values), sizeof values))),
              HasSubstr("NaN or infinity"));
}

TEST(Sound, LimitsHold) {
  const std::string file = sound_file("chirp.wav");
  EXPECT_THAT(error(file, {.bytes = file.size() - 1}), HasSubstr("bytes, but the limit is"));
  EXPECT_THAT(error(file, {.seconds = 1}), HasSubstr("longer than 1 seconds"));
  EXPECT_EQ(error(file, {.seconds = 2}), "");
}

// The header of the truncated file claims more samples than the file has.
TEST(Sound, HeadersAreNotBelieved) {
  const std::string file = sound_file("chirp.wav");
  EXPECT_EQ(decode(file.substr(0, 44 + 2000)).value().size(), 1000U);
}

TEST(QuietCuts, AreWhereItIsQuietest) {
  std::vector<float> sound(100'000, 0.5F);
  EXPECT_THAT(quiet_cuts(sound, 100'000, 16'000), ElementsAre(0));
  for (std::size_t i = 30'400; i < 32'000; ++i) sound[i] = 0.01F;
  EXPECT_THAT(quiet_cuts(sound, 40'000, 16'000), ElementsAre(0, 30'400, 54'400, 78'400));
  EXPECT_THAT(quiet_cuts(std::vector<float>(10, 1.0F), 4, 1), ElementsAre(0, 3, 6));
}

}  // namespace
}  // namespace octavo::media
