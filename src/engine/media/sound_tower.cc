#include "engine/media/sound_tower.h"

#include <algorithm>
#include <cstring>

#include "model/inputs/media.h"
#include "tensor/dequantize.h"

namespace octavo {
namespace {

// Returns the inputs of a convolution: row i consists of the kSoundTaps frames from frame i * step on. The
// rows overlap in memory.
View taps_of(const View& frames, std::int64_t step) {
  const std::int64_t width = frames.size(1), count = (frames.size(0) - kSoundTaps) / step + 1;
  View taps = View::of(frames.data, frames.dtype, {count, kSoundTaps * width});
  taps.stride[0] = step * width;
  return taps;
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
  const DType act = tower_.activation;
  const std::int64_t frames = input_.frames(), dim = tower_.spec.dim;
  const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    return size_of(act) * static_cast<std::size_t>(rows * columns);
  };
  host_mels_.resize(bytes(frames + 2, input_.mels));
  TRY(mels_, device.allocate(host_mels_.size()));
  TRY(products_, device.allocate(bytes(frames, dim)));
  TRY(features_, device.allocate(bytes(1 + frames, dim)));
  device.clear(*backend_.stream, features_.view(act, {1, dim}));
  return {};
}

// Uploads the first `count` frames of a spectrogram [mels, frames], and a frame before and after them.
// Returns act [count + 2, mels].
View SoundTower::upload_mels(std::string_view spectrogram, std::int64_t count) {
  backend_.stream->synchronize();  // waits, because the device may still read the last sound
  const DType act = tower_.activation;
  const std::int64_t frames = input_.frames(), mels = input_.mels;
  for (std::int64_t frame = 0; frame < std::min(frames, count + 1); ++frame)
    for (std::int64_t mel = 0; mel < mels; ++mel) {
      float value;
      std::memcpy(&value, spectrogram.data() + static_cast<std::size_t>(mel * frames + frame) * sizeof value,
                  sizeof value);
      put_number(host_mels_.data(), act, static_cast<std::size_t>((1 + frame) * mels + mel), value);
    }
  const View device = mels_.view(act, {count + 2, mels});
  backend_.device->upload(*backend_.stream, device, host_mels_.data());
  return device;
}

void SoundTower::convolve(const LinearParameter& w, const View& frames, std::int64_t step, const View& out) {
  const View product = View::of(products_.data(), out.dtype, {out.size(0), out.size(1)});
  backend_.ops.matmul(
      *backend_.stream,
      {.x = taps_of(frames, step), .w = *w.weight.weight, .bias = w.bias.value, .y = product});
  backend_.ops.activate(*backend_.stream,
                        {.x = product, .activation = Activation::gelu, .gated = false, .y = out});
}

void SoundTower::begin(std::string_view spectrogram, int rows_wanted) {
  const auto& convolutions = tower_.network.input<SoundInputRows>()->convolutions();
  const std::int64_t rows = rows_wanted, seen = 2 * rows;
  CHECK(std::ssize(spectrogram) ==
            std::int64_t{input_.mels} * input_.frames() * static_cast<std::int64_t>(sizeof(float)),
        "{} bytes of sound", spectrogram.size());
  const View features = features_.view(tower_.activation, {1 + seen, tower_.spec.dim});
  convolve(convolutions[0], upload_mels(spectrogram, seen), 1, features.rows(1, seen));
  // The second convolution has read the features of all frames when its activation overwrites them.
  const View halved = features.rows(1, rows);
  convolve(convolutions[1], features, 2, halved);
  layers_->begin(rows, {.positions = {}, .groups = {}, .features = halved});
}

}  // namespace octavo
