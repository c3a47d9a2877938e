// Computes the per-layer embeddings of all layers, before the first layer (LayerInputs).
#pragma once

#include "model/part.h"
#include "model/residual/half.h"
#include "model/spec.h"

namespace octavo {

// Slots, [tokens, layers * size]: the part from the ids (f32), the part from the embeddings (act), and the
// normalised sum of both (act).
struct LayerInputSums {};
struct LayerInputProducts {};
struct LayerInputRows {};

class LayerInputsPhase final : public Phase {
 public:
  LayerInputsPhase(const ModelSpec& spec, const Namer& top);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  Result<> splits(const Shard&) const override { return not_split("inputs of layers"); }
  bool spans_layers() const override { return true; }
  void run(const Step& step) const override;

 private:
  std::int64_t layers_, size_, dim_;
  MatrixParameter table_;
  LinearParameter projection_;
  NormParameter norm_;
};

}  // namespace octavo
