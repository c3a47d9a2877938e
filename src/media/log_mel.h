// Log-mel spectrograms for Whisper, the input of audio encoders. Gives the same values as
// WhisperFeatureExtractor of transformers.
#pragma once

#include <span>
#include <vector>

namespace octavo::media {

struct MelConfig {
  int mels = 80;
  int seconds = 30;

  static constexpr int kRate = 16'000;  // samples per second
  static constexpr int kFft = 400;      // samples per frame
  static constexpr int kHop = 160;      // samples between the starts of two frames

  int samples() const { return seconds * kRate; }
  int frames() const { return samples() / kHop; }
};

class LogMel {
 public:
  explicit LogMel(const MelConfig& config);

  const MelConfig& config() const { return config_; }
  // Returns [windows, mels, frames] as (max(log10(p), maximum - 8) + 4) / 4. p is the power in a triangular
  // band of Slaney's mel scale, and maximum is the largest log10(p) of all windows. `samples` must fit into
  // the windows; silence fills the rest.
  std::vector<float> operator()(std::span<const float> samples, int windows = 1) const;

 private:
  static constexpr int kBins = MelConfig::kFft / 2 + 1;
  struct Band {
    int first = 0;  // first frequency bin of the band
    std::vector<double> weights;
  };

  void powers(std::span<const double> frame, std::span<double> out) const;

  MelConfig config_;
  std::vector<double> window_;     // [kFft]
  std::vector<double> cos_, sin_;  // [kFft / 2 + 1, kBins]
  std::vector<Band> bands_;
};

}  // namespace octavo::media
