// Sound files to samples: WAV, FLAC, Ogg (Vorbis, Opus) and MP3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace octavo::media {

// As vLLM has them.
struct SoundLimits {
  std::size_t bytes = std::size_t{25} << 20;  // of the file
  int seconds = 600;                          // of what is in it
  int channels = 8;
};

// One channel, the mean of all, at `rate` samples a second: as they are where the file has that rate, else
// resampled. Errors (invalid_argument): a format that is not supported, a broken file, no samples or some
// that are no numbers, more than the limits allow.
Result<std::vector<float>> decode_sound(std::span<const std::byte> file, int rate,
                                        const SoundLimits& limits = {});

// Where to cut `samples` into pieces of at most `most`: where it is quietest in the last `search` samples of
// each, as vLLM cuts. Gives the beginnings of the pieces, ascending, the first of them 0. Positive numbers,
// search <= most.
std::vector<std::size_t> quiet_cuts(std::span<const float> samples, std::size_t most, std::size_t search);

}  // namespace octavo::media
