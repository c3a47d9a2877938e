// Input of a drafter: rows of the target's residual, or of the drafter's own residual (HiddenInput).
#pragma once

#include <vector>

#include "model/part.h"
#include "model/residual/half.h"
#include "model/spec.h"

namespace octavo {

struct HiddenRows {};     // f32 [tokens, HiddenInput::row()]: the rows that the drafter reads
struct HiddenFactors {};  // HiddenRows in the format of activations, for matrix products
struct JointRows {};      // act [tokens, both widths]: embedding and row, concatenated

// Slot, f32 [tokens, dim]: the residual before a layer that the drafter reads. The slot's number is an index
// into HiddenInput::layers.
struct KeptRows {};

// The memory that rows are read from. All views are f32 [tokens, dim].
struct HiddenSource {
  std::vector<View> kept;  // KeptRows of all HiddenInput::layers; empty: `residual` is read
  View residual;
  Norm final_norm;
  bool own = false;  // the rows are the drafter's own, not the target's
};

class HiddenRowsInput final : public Phase {
 public:
  // `first` is the namer of the first layer.
  HiddenRowsInput(const ModelSpec& spec, const Namer& top, const Namer& first);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  // Must be called before the step. Token i of the step gets row rows[i].
  void read(Backend& backend, const Slots& slots, const HiddenSource& from, const View& rows) const;
  // Combines the embeddings in the residual with the rows from read().
  void run(const Step& step) const override;

 private:
  void multiply(Backend& backend, const View& x, const View& y) const;

  HiddenInput spec_;
  std::int64_t dim_;
  // token_norm_: if HiddenInput::joined is false, this is the first layer's norm
  NormParameter token_norm_, hidden_norm_;
  LinearParameter joint_;
};

// The first mixer of a drafter with joined == false. It reads embedding and row, concatenated.
class JointHalf final : public LayerHalf {
 public:
  using LayerHalf::LayerHalf;

 private:
  View enter(const Step& step) const override { return step.slot<JointRows>(); }
};

// Copies the target's residual before the layers that its drafter reads.
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
