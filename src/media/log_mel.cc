#include "media/log_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/clones.h"

namespace octavo::media {
namespace {

constexpr int kFft = MelConfig::kFft, kHop = MelConfig::kHop, kHalf = kFft / 2;
constexpr double kFloor = 1e-10;

// Slaney's scale is linear below 1000 Hz and logarithmic above.
constexpr double kLinearMels = 15;
double mel_of(double hertz) {
  return hertz < 1000 ? hertz * 3 / 200 : kLinearMels + std::log(hertz / 1000) * 27 / std::log(6.4);
}
double hertz_of(double mel) {
  return mel < kLinearMels ? mel * 200 / 3 : 1000 * std::exp((mel - kLinearMels) * std::log(6.4) / 27);
}

OCTAVO_CLONES void add_scaled(double x, const double* table, double* sums, int count) {
  for (int k = 0; k < count; ++k) sums[k] += x * table[k];
}

// Returns sample i. An index outside [0, size) is mirrored at this end. Samples after the end of `samples`
// are 0.
double mirrored(std::span<const float> samples, int size, int i) {
  if (i < 0) i = -i;
  if (i >= size) i = 2 * (size - 1) - i;
  return static_cast<std::size_t>(i) < samples.size() ? double{samples[static_cast<std::size_t>(i)]} : 0;
}

}  // namespace

LogMel::LogMel(const MelConfig& config) : config_(config) {
  for (int i = 0; i < kFft; ++i) window_.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / kFft));
  for (int n = 0; n <= kHalf; ++n)
    for (int k = 0; k < kBins; ++k) {
      const double angle = 2 * std::numbers::pi * (n * k % kFft) / kFft;
      cos_.push_back(std::cos(angle));
      sin_.push_back(std::sin(angle));
    }
  const double top = mel_of(MelConfig::kRate / 2.0);
  const auto edge = [&](int i) { return hertz_of(top * i / (config.mels + 1)); };
  for (int mel = 0; mel < config.mels; ++mel) {
    const double left = edge(mel), middle = edge(mel + 1), right = edge(mel + 2);
    Band band;
    for (int k = 0; k < kBins; ++k) {
      const double hertz = static_cast<double>(k) * MelConfig::kRate / kFft;
      const double height = std::min((hertz - left) / (middle - left), (right - hertz) / (right - middle));
      if (height <= 0) continue;
      if (band.weights.empty()) band.first = k;
      band.weights.push_back(height * 2 / (right - left));
    }
    bands_.push_back(std::move(band));
  }
}

// Computes the power of each frequency by a discrete Fourier transform of real numbers. Two samples with
// equal distances from the middle have equal cosines, and sines that differ only in sign.
void LogMel::powers(std::span<const double> frame, std::span<double> out) const {
  std::array<double, kBins> real{}, imaginary{};
  for (int n = 0; n <= kHalf; ++n) {
    const bool alone = n == 0 || n == kHalf;
    const double one = frame[static_cast<std::size_t>(n)];
    const double other = alone ? 0 : frame[static_cast<std::size_t>(kFft - n)];
    const auto row = static_cast<std::size_t>(n) * kBins;
    add_scaled(one + other, cos_.data() + row, real.data(), kBins);
    if (!alone) add_scaled(one - other, sin_.data() + row, imaginary.data(), kBins);
  }
  for (std::size_t k = 0; k < kBins; ++k) out[k] = real[k] * real[k] + imaginary[k] * imaginary[k];
}

std::vector<float> LogMel::operator()(std::span<const float> samples, int windows) const {
  const int size = windows * config_.samples(), frames = config_.frames();
  CHECK(std::ssize(samples) <= size, "{} samples exceed windows of {} samples", samples.size(), size);
  const auto columns = static_cast<std::size_t>(frames);
  const std::size_t numbers = bands_.size() * columns;
  std::vector<double> logs(numbers * static_cast<std::size_t>(windows), std::log10(kFloor));
  std::array<double, kFft> frame;
  std::array<double, kBins> power;
  for (int t = 0; t < windows * frames; ++t) {
    const int begin = t * kHop - kHalf;
    if (begin >= std::ssize(samples) && begin + kFft <= size) continue;  // skips frames of silence
    for (int i = 0; i < kFft; ++i)
      frame[static_cast<std::size_t>(i)] =
          mirrored(samples, size, begin + i) * window_[static_cast<std::size_t>(i)];
    powers(frame, power);
    double* const column = logs.data() + static_cast<std::size_t>(t / frames) * numbers + t % frames;
    for (std::size_t b = 0; b < bands_.size(); ++b) {
      double sum = 0;
      for (std::size_t k = 0; k < bands_[b].weights.size(); ++k)
        sum += bands_[b].weights[k] * power[static_cast<std::size_t>(bands_[b].first) + k];
      column[b * columns] = std::log10(std::max(sum, kFloor));
    }
  }
  const double least = *std::ranges::max_element(logs) - 8;
  std::vector<float> out;
  out.reserve(logs.size());
  for (const double value : logs) out.push_back(static_cast<float>((std::max(value, least) + 4) / 4));
  return out;
}

}  // namespace octavo::media
