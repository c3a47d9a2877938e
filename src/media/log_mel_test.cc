#include "media/log_mel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "media/sound.h"
#include "media/testing/golden.h"

namespace octavo::media {
namespace {

std::vector<float> chirp() {
  const std::string file = file_bytes(std::string(kSoundRoot) + "chirp.wav");
  return decode_sound(std::as_bytes(std::span(file)), MelConfig::kRate).value();
}

float difference(std::span<const float> a, std::span<const float> b) {
  float most = 0;
  for (std::size_t i = 0; i < b.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(LogMel, IsThatOfTransformers) {
  const VisionGolden golden("whisper", kSoundRoot);
  const std::vector<float> mel = LogMel({.mels = 80, .seconds = 2})(chirp());
  ASSERT_EQ(mel.size(), 80U * 200);
  EXPECT_LE(difference(mel, golden.values<float>("mel")), 1e-5);

  const std::vector<float> more = LogMel({.mels = 128, .seconds = 2})(chirp());
  const std::vector<float> expected = golden.values<float>("mel128");  // [128, 40]
  for (std::size_t bin = 0; bin < 128; ++bin)
    EXPECT_LE(difference(std::span(more).subspan(bin * 200, 40), std::span(expected).subspan(bin * 40, 40)),
              1e-5)
        << bin;
}

// Some frames contain samples of two windows, and both windows share one maximum.
TEST(LogMel, OfSeveralWindowsIsThatOfTheWholeSound) {
  const VisionGolden golden("voxtral", kSoundRoot);
  const std::string file = file_bytes(std::string(kSoundRoot) + "long.wav");
  const std::vector<float> samples = decode_sound(std::as_bytes(std::span(file)), MelConfig::kRate).value();
  const std::vector<float> mel = LogMel({.mels = 80, .seconds = 2})(samples, 2);
  ASSERT_EQ(mel.size(), 2 * 80U * 200);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_LE(difference(std::span(mel).subspan(i * 80 * 200, 80U * 200),
                         golden.values<float>(fmt::format("mel.long.wav.{}", i))),
              1e-5)
        << i;
}

// Silence gives the minimum everywhere, for any window length.
TEST(LogMel, OfSilenceIsFlat) {
  const LogMel log_mel({.mels = 80, .seconds = 30});
  for (const float value : log_mel({})) ASSERT_FLOAT_EQ(value, (-10.0F + 4) / 4);
  EXPECT_EQ(log_mel(std::vector<float>(16000, 0.0F)), log_mel({}));
}

// Zeros after a sound have the same result as padding.
TEST(LogMel, PadsWithZeros) {
  const LogMel log_mel({.mels = 80, .seconds = 2});
  std::vector<float> padded = chirp();
  const std::vector<float> bare = padded;
  padded.resize(32000);
  EXPECT_EQ(log_mel(padded), log_mel(bare));
}

}  // namespace
}  // namespace octavo::media
