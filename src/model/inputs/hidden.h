// Input of a network that proposes for another: rows of the other's residual, or of this one's (HiddenInput).
#pragma once

#include <vector>

#include "model/part.h"
#include "model/residual/half.h"
#include "model/spec.h"

namespace octavo {

struct HiddenRows {};     // f32 [tokens, HiddenInput::row()]: what has been read
struct HiddenFactors {};  // the same in the format of activations, to be multiplied
struct JointRows {};      // act [tokens, both]: embedding and row side by side

// f32 [tokens, dim]: the residual before a layer that such a network reads, by the layer's index among
// them.
struct KeptRows {};

// Sources of the rows, all f32 [tokens, dim].
struct HiddenSource {
  std::vector<View> kept;  // if empty, the residual is read
  View residual;
  Norm final_norm;
  bool own = false;  // the network itself has made them
};

class HiddenRowsInput final : public Phase {
 public:
  // first: of the first layer.
  HiddenRowsInput(const ModelSpec& spec, const Namer& top, const Namer& first);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  // Before the step: row rows[i] is for its token i.
  void read(Backend& backend, const Slots& slots, const HiddenSource& from, const View& rows) const;
  // Combines the embeddings in the residual with the rows that have been read.
  void run(const Step& step) const override;

 private:
  void multiply(Backend& backend, const View& x, const View& y) const;

  HiddenInput spec_;
  std::int64_t dim_;
  NormParameter token_norm_, hidden_norm_;  // token_norm: of HiddenInput::joined, else the first layer's
  LinearParameter joint_;
};

// The first mixer of such a network, which sees the embedding and the row side by side.
class JointHalf final : public LayerHalf {
 public:
  using LayerHalf::LayerHalf;

 private:
  View enter(const Step& step) const override { return step.slot<JointRows>(); }
};

// Rows kept for such a network, before these layers: of the network that it proposes for.
class RowKeeper {
 public:
  RowKeeper(std::vector<int> layers, std::int64_t dim) : layers_(std::move(layers)), dim_(dim) {}

  void reserve(Arena arena) const;
  void before(std::size_t layer, const Step& step) const;
  std::vector<View> kept(const Slots& slots) const;

 private:
  std::vector<int> layers_;
  std::int64_t dim_;
};

}  // namespace octavo
