#include "engine/media/sound_tower.h"

#include <algorithm>
#include <cstring>

#include "model/inputs/media.h"
#include "tensor/dequantize.h"

namespace octavo {
namespace {

// Calls put(to, frame, channel) for each input of each convolution output. The inputs are in the order of
// the weights: channel, then frame. Frame -1 is before the start of the sound; its values are 0.
template <class Put>
void lay_out_patches(std::int64_t outputs, std::int64_t step, std::int64_t count, std::int64_t channels,
                     Put put) {
  std::int64_t to = 0;
  for (std::int64_t i = 0; i < outputs; ++i)
    for (std::int64_t channel = 0; channel < channels; ++channel)
      for (std::int64_t tap = 0; tap < kSoundTaps; ++tap, ++to) {
        const std::int64_t frame = i * step + tap - kSoundTaps / 2;
        put(to, frame >= 0 && frame < count ? frame : -1, channel);
      }
}

}  // namespace

Result<std::unique_ptr<SoundTower>> SoundTower::create(const Model& tower, Backend& backend) {
  std::unique_ptr<SoundTower> made(new SoundTower(tower, backend));
  TRY_VOID(made->allocate());
  return made;
}

SoundTower::SoundTower(const Model& tower, Backend& backend)
    : tower_(tower), input_(*tower.spec.inputs.sound), backend_(backend) {}

Result<> SoundTower::allocate() {
  const int n = input_.rows;
  TRY(layers_, SequenceLayers::create(tower_, n, backend_));

  Device& device = *backend_.device;
  const std::size_t act = size_of(tower_.activation), rows = static_cast<std::size_t>(n);
  const std::size_t frames = 2 * rows, dim = static_cast<std::size_t>(tower_.spec.dim);
  const std::size_t taps = kSoundTaps;
  TRY(patches_,
      device.allocate(act * taps * std::max(frames * static_cast<std::size_t>(input_.mels), rows * dim)));
  TRY(products_, device.allocate(act * frames * dim));
  TRY(features_, device.allocate(act * frames * dim));
  return {};
}

void SoundTower::convolve(const LinearParameter& w, const View& patches, const View& out) {
  const View product = View::of(products_.data(), out.dtype, {out.size(0), out.size(1)});
  backend_.ops.matmul(*backend_.stream,
                      {.x = patches, .w = *w.weight.weight, .bias = w.bias.value, .y = product});
  backend_.ops.activate(*backend_.stream,
                        {.x = product, .activation = Activation::gelu, .gated = false, .y = out});
}

void SoundTower::begin(std::string_view spectrogram, int rows_wanted) {
  const auto& convolutions = tower_.network.input<SoundInputRows>()->convolutions();
  const std::int64_t rows = rows_wanted, frames = input_.frames(), mels = input_.mels, dim = tower_.spec.dim;
  const std::int64_t seen = 2 * rows;
  CHECK(std::ssize(spectrogram) == mels * frames * static_cast<std::int64_t>(sizeof(float)),
        "{} bytes of sound", spectrogram.size());
  const DType act = tower_.activation;
  const std::size_t bytes = size_of(act);
  auto* const patches = static_cast<std::byte*>(patches_.data());
  lay_out_patches(seen, 1, frames, mels, [&](std::int64_t to, std::int64_t frame, std::int64_t mel) {
    float value = 0;
    if (frame >= 0)
      std::memcpy(&value, spectrogram.data() + static_cast<std::size_t>(mel * frames + frame) * sizeof value,
                  sizeof value);
    put_number(patches, act, static_cast<std::size_t>(to), value);
  });
  const View first = features_.view(act, {seen, dim});
  convolve(convolutions[0], patches_.view(act, {seen, mels * kSoundTaps}), first);
  lay_out_patches(rows, 2, frames, dim, [&](std::int64_t to, std::int64_t frame, std::int64_t channel) {
    std::byte* const out = patches + static_cast<std::size_t>(to) * bytes;
    if (frame < 0)
      std::memset(out, 0, bytes);
    else
      std::memcpy(
          out,
          static_cast<const std::byte*>(first.data) + static_cast<std::size_t>(frame * dim + channel) * bytes,
          bytes);
  });
  const View features = features_.view(act, {rows, dim});
  convolve(convolutions[1], patches_.view(act, {rows, dim * kSoundTaps}), features);

  layers_->begin(rows, {.positions = {}, .groups = {}, .features = features});
}

}  // namespace octavo
