// Decodes audio files: WAV, FLAC, Ogg (Vorbis, Opus) and MP3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace octavo::media {

// vLLM's limits.
struct SoundLimits {
  std::size_t bytes = std::size_t{25} << 20;  // size of the file
  int seconds = 600;                          // length of the audio
  int channels = 8;
};

// One channel, the mean of all, at `rate` samples per second; resampled only if the file has another rate.
// Errors (invalid_argument): an unsupported format, a broken file, no samples, samples that are not finite, a
// limit exceeded.
Result<std::vector<float>> decode_sound(std::span<const std::byte> file, int rate,
                                        const SoundLimits& limits = {});

// Start indices of pieces of at most `most` samples. Cuts at the quietest point in the last `search` samples
// of each piece, as vLLM does. Ascending, the first is 0. Arguments are positive; search <= most.
std::vector<std::size_t> quiet_cuts(std::span<const float> samples, std::size_t most, std::size_t search);

}  // namespace octavo::media
