// Inputs of image and audio encoders.
#pragma once

#include <array>

#include "model/part.h"
#include "model/residual/residual.h"
#include "model/spec.h"

namespace octavo {

// Embeds the patches of an image, and adds their positions.
class PatchInput final : public Phase {
 public:
  PatchInput(const ModelSpec& spec, const Namer& top, const std::string& prefix);

  // Number of rows before each image's patches (ImageInput::classes).
  std::int64_t class_rows() const { return class_token_.weight ? class_token_.rows : 0; }
  const Weight& positions() const { return *positions_.weight; }
  const View& newline() const { return newline_.value; }      // if ImageInput::tiled
  const View& separator() const { return separator_.value; }  // if ImageInput::whole_last
  const Weight& marks() const { return *marks_.weight; }      // if ImageInput::marks() > 0

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  void place(const Step& step) const;

  std::int64_t dim_;
  LinearParameter patches_;
  MatrixParameter positions_, class_token_, marks_;
  VectorParameter newline_, separator_;
  NormParameter patch_norm_;
};

// Reads the output of the convolutions at the start of an audio encoder.
class SoundInputRows final : public Phase {
 public:
  SoundInputRows(const ModelSpec& spec, const Namer& top);

  // The columns of a convolution's matrix are [kSoundTaps, channels].
  const std::array<LinearParameter, 2>& convolutions() const { return convolutions_; }

  void list(ParameterList& list) override;
  void run(const Step& step) const override;

 private:
  std::array<LinearParameter, 2> convolutions_;
  MatrixParameter positions_;
};

}  // namespace octavo
