// Input of a drafter: rows of the target's residual or of the drafter's (HiddenInput).
#pragma once

#include <vector>

#include "model/part.h"
#include "model/residual/half.h"
#include "model/spec.h"

namespace octavo {

struct HiddenRows {};     // f32 [tokens, HiddenInput::row()]: the rows read
struct HiddenFactors {};  // HiddenRows in the activations' format, for matrix products
struct JointRows {};      // act [tokens, both]: embedding and row, concatenated

// f32 [tokens, dim]: the residual before a layer that the drafter reads; numbered by HiddenInput::layers.
struct KeptRows {};

// Where the rows are read from, all f32 [tokens, dim].
struct HiddenSource {
  std::vector<View> kept;  // rows of KeptRows; empty: the residual is read
  View residual;
  Norm final_norm;
  bool own = false;  // the drafter itself has computed the rows
};

class HiddenRowsInput final : public Phase {
 public:
  // first: namer of the first layer.
  HiddenRowsInput(const ModelSpec& spec, const Namer& top, const Namer& first);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  // Call this before the step: token i of the step gets row rows[i].
  void read(Backend& backend, const Slots& slots, const HiddenSource& from, const View& rows) const;
  // Combines the embeddings in the residual with the rows read.
  void run(const Step& step) const override;

 private:
  void multiply(Backend& backend, const View& x, const View& y) const;

  HiddenInput spec_;
  std::int64_t dim_;
  NormParameter token_norm_, hidden_norm_;  // token_norm_: used if HiddenInput::joined; else it is the first
                                            // layer's norm
  LinearParameter joint_;
};

// The first mixer of a drafter with joined == false: its input is embedding and row, concatenated.
class JointHalf final : public LayerHalf {
 public:
  using LayerHalf::LayerHalf;

 private:
  View enter(const Step& step) const override { return step.slot<JointRows>(); }
};

// Keeps the target's rows before the layers that its drafter reads.
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
