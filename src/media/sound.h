// Decodes audio files, and cuts long recordings at quiet points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace octavo::media {

// Limits of audio files, with vLLM's defaults.
struct SoundLimits {
  std::size_t bytes = std::size_t{25} << 20;
  int seconds = 600;
  int channels = 8;
};

// Decodes an audio file. Returns the mean of all channels, at `rate` samples per second; resamples only if
// the file has another rate. Returns invalid_argument for an unsupported format, a broken file, no samples,
// samples that are not finite, or an exceeded limit.
Result<std::vector<float>> decode_sound(std::span<const std::byte> file, int rate,
                                        const SoundLimits& limits = {});

// Cuts the samples into pieces of at most `most` samples, and returns the index of each piece's first
// sample, ascending from 0. As in vLLM, each cut is at the quietest point of the last `search` samples of a
// piece. Requires most > 0 and 0 < search <= most.
std::vector<std::size_t> quiet_cuts(std::span<const float> samples, std::size_t most, std::size_t search);

}  // namespace octavo::media
