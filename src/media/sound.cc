#include "media/sound.h"

#include <sndfile.h>
#include <soxr.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

namespace octavo::media {
namespace {

constexpr int kRateMin = 1000, kRateMax = 384'000;

// Returns true if the file has a supported format. libsndfile's other formats are excluded, because they
// are rare and their code is old.
bool supported(std::span<const std::byte> file) {
  const std::string_view head(reinterpret_cast<const char*>(file.data()),
                              std::min<std::size_t>(file.size(), 12));
  const bool wave = head.starts_with("RIFF") && head.ends_with("WAVE");
  const bool mpeg =
      head.starts_with("ID3") || (head.size() > 1 && head[0] == '\xff' && (head[1] & '\xe0') == '\xe0');
  return wave || mpeg || head.starts_with("fLaC") || head.starts_with("OggS");
}

// Lets libsndfile read a file that is in memory.
class Source {
 public:
  explicit Source(std::span<const std::byte> bytes) : bytes_(bytes) {}

  static SF_VIRTUAL_IO functions() {
    return {.get_filelen = [](void* self) { return size(self); },
            .seek = [](sf_count_t offset, int whence, void* self) { return of(self).seek(offset, whence); },
            .read = [](void* to, sf_count_t count, void* self) { return of(self).read(to, count); },
            .write = [](const void*, sf_count_t, void*) { return sf_count_t{0}; },
            .tell = [](void* self) { return of(self).at_; }};
  }

 private:
  static Source& of(void* self) { return *static_cast<Source*>(self); }
  static sf_count_t size(void* self) { return std::ssize(of(self).bytes_); }

  sf_count_t seek(sf_count_t offset, int whence) {
    const sf_count_t end = std::ssize(bytes_);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? at_ : end;
    if (offset < -from || offset > end - from) return -1;
    return at_ = from + offset;
  }
  sf_count_t read(void* to, sf_count_t count) {
    const sf_count_t taken = std::clamp<sf_count_t>(count, 0, std::ssize(bytes_) - at_);
    if (taken > 0) std::memcpy(to, bytes_.data() + at_, static_cast<std::size_t>(taken));
    at_ += taken;
    return taken;
  }

  std::span<const std::byte> bytes_;
  sf_count_t at_ = 0;
};

struct Close {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using File = std::unique_ptr<SNDFILE, Close>;

class Resampler {
 public:
  static Result<Resampler> make(int from, int to) {
    soxr_error_t error = nullptr;
    Resampler out;
    if (from != to) out.soxr_.reset(soxr_create(from, to, 1, &error, nullptr, nullptr, nullptr));
    if (error != nullptr) return failure(ErrorCode::internal, "cannot resample the audio: {}", error);
    return out;
  }

  // Resamples `samples` and appends them to `out`. An empty input marks the end of the file.
  Result<> add(std::span<const float> samples, std::vector<float>& out) {
    if (!soxr_) {
      out.insert(out.end(), samples.begin(), samples.end());
      return {};
    }
    const float* in = samples.empty() ? nullptr : samples.data();
    for (std::size_t read = 0;;) {
      std::array<float, 4096> piece;
      std::size_t taken = 0, made = 0;
      const soxr_error_t error =
          soxr_process(soxr_.get(), in == nullptr ? nullptr : in + read, samples.size() - read, &taken,
                       piece.data(), piece.size(), &made);
      if (error != nullptr) return failure(ErrorCode::internal, "cannot resample the audio: {}", error);
      read += taken;
      out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(made));
      if (read == samples.size() && made < piece.size()) return {};
    }
  }

 private:
  struct Delete {
    void operator()(soxr* resampler) const { soxr_delete(resampler); }
  };
  std::unique_ptr<soxr, Delete> soxr_;  // null if the rates are equal
};

// Reads the mean of all channels at `rate`. Counts the samples, because the length in the file's header may
// be wrong.
Result<std::vector<float>> read_mono(SNDFILE* file, const SF_INFO& info, int seconds, int rate) {
  constexpr std::size_t kFrames = 4096;
  const auto channels = static_cast<std::size_t>(info.channels);
  const std::size_t most = static_cast<std::size_t>(seconds) * static_cast<std::size_t>(info.samplerate);
  TRY(Resampler resampler, Resampler::make(info.samplerate, rate));
  std::vector<float> frames(kFrames * channels), mono, samples;
  for (std::size_t read = 0;;) {
    const sf_count_t count = sf_readf_float(file, frames.data(), kFrames);
    if (count <= 0) break;
    read += static_cast<std::size_t>(count);
    if (read > most) return invalid("", "the sound is longer than {} seconds", seconds);
    mono.clear();
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < channels; ++c) sum += frames[i * channels + c];
      mono.push_back(static_cast<float>(sum / static_cast<double>(channels)));
    }
    TRY_VOID(resampler.add(mono, samples));
  }
  TRY_VOID(resampler.add({}, samples));
  return samples;
}

double energy(std::span<const float> samples) {
  double sum = 0;
  for (const float sample : samples) sum += double{sample} * sample;
  return sum;
}

}  // namespace

Result<std::vector<float>> decode_sound(std::span<const std::byte> file, int rate,
                                        const SoundLimits& limits) {
  if (file.size() > limits.bytes)
    return invalid("", "the file has {} bytes, but the limit is {}", file.size(), limits.bytes);
  if (!supported(file))
    return invalid("", "Invalid or corrupted audio data: send WAV, FLAC, Ogg (Vorbis, Opus) or MP3");
  Source source(file);
  SF_VIRTUAL_IO functions = Source::functions();
  SF_INFO info{};
  const File opened(sf_open_virtual(&functions, SFM_READ, &info, &source));
  if (!opened) return invalid("", "the sound is damaged: {}", sf_strerror(nullptr));
  if (info.channels < 1 || info.channels > limits.channels)
    return invalid("", "the sound has {} channels, but must have 1 to {}", info.channels, limits.channels);
  if (info.samplerate < kRateMin || info.samplerate > kRateMax)
    return invalid("", "the sound has {} samples per second, but must have {} to {}", info.samplerate,
                   kRateMin, kRateMax);
  TRY(std::vector<float> samples, read_mono(opened.get(), info, limits.seconds, rate));
  if (samples.empty()) return invalid("", "the sound has no samples");
  if (!std::ranges::all_of(samples, [](float sample) { return std::isfinite(sample); }))
    return invalid("", "the sound has samples that are NaN or infinity");
  return samples;
}

std::vector<std::size_t> quiet_cuts(std::span<const float> samples, std::size_t most, std::size_t search) {
  constexpr std::size_t kPiece = 1600;  // samples per window; the cut is at the window with the least energy
  std::vector<std::size_t> cuts{0};
  while (samples.size() - cuts.back() > most) {
    const std::size_t end = cuts.back() + most;
    const std::size_t first = end - search;
    std::size_t quietest = first;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = first; i + kPiece < end; i += kPiece) {
      const double own = energy(samples.subspan(i, kPiece));
      if (own < least) least = own, quietest = i;
    }
    cuts.push_back(quietest > cuts.back() ? quietest : end);
  }
  return cuts;
}

}  // namespace octavo::media
