// Log-mel spectrograms for Whisper. Equal to those of transformers' WhisperFeatureExtractor.
#pragma once

#include <span>
#include <vector>

namespace octavo::media {

struct MelConfig {
  int mels = 80;
  int seconds = 30;  // length of a window

  static constexpr int kRate = 16'000;  // samples per second
  static constexpr int kFft = 400;      // samples per frame
  static constexpr int kHop = 160;      // number of samples between the starts of two frames

  int samples() const { return seconds * kRate; }
  int frames() const { return samples() / kHop; }
};

class LogMel {
 public:
  explicit LogMel(const MelConfig& config);

  const MelConfig& config() const { return config_; }
  // samples: at most as long as all windows; silence fills the rest. Returns [windows, mels, frames]: the
  // power p in triangular bands of Slaney's mel scale, as (max(log10(p), maximum - 8) + 4) / 4.
  std::vector<float> operator()(std::span<const float> samples, int windows = 1) const;

 private:
  static constexpr int kBins = MelConfig::kFft / 2 + 1;
  struct Band {
    int first = 0;  // index of the band's first frequency bin
    std::vector<double> weights;
  };

  void powers(std::span<const double> frame, std::span<double> out) const;

  MelConfig config_;
  std::vector<double> window_;     // [kFft]
  std::vector<double> cos_, sin_;  // [kFft / 2 + 1, kBins]
  std::vector<Band> bands_;
};

}  // namespace octavo::media
