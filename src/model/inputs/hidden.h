// Input of a drafter: rows of the target's residual or of the drafter's residual (HiddenInput).
#pragma once

#include <vector>

#include "model/part.h"
#include "model/residual/half.h"
#include "model/spec.h"

namespace octavo {

struct HiddenRows {};     // f32 [tokens, HiddenInput::row()]: rows that the drafter reads
struct HiddenFactors {};  // HiddenRows in the format of the activations, for matrix products
struct JointRows {};      // act [tokens, both widths]: concatenated embedding and row

// f32 [tokens, dim]: residual before a layer that the drafter reads; the slot's number is the index in
// HiddenInput::layers
struct KeptRows {};

// Memory from which the rows are read, all f32 [tokens, dim].
struct HiddenSource {
  std::vector<View> kept;  // rows of KeptRows; empty: the residual is used
  View residual;
  Norm final_norm;
  bool own = false;  // whether the drafter itself has computed the rows
};

class HiddenRowsInput final : public Phase {
 public:
  // first: namer of the first layer.
  HiddenRowsInput(const ModelSpec& spec, const Namer& top, const Namer& first);

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;
  // Reads the rows before the step: token i of the step gets row rows[i].
  void read(Backend& backend, const Slots& slots, const HiddenSource& from, const View& rows) const;
  // Combines the embeddings in the residual with the rows that were read.
  void run(const Step& step) const override;

 private:
  void multiply(Backend& backend, const View& x, const View& y) const;

  HiddenInput spec_;
  std::int64_t dim_;
  NormParameter token_norm_, hidden_norm_;  // token_norm_: used if HiddenInput::joined; otherwise it is the
                                            // first layer's norm
  LinearParameter joint_;
};

// The first mixer of a drafter with joined == false. It reads the concatenation of embedding and row.
class JointHalf final : public LayerHalf {
 public:
  using LayerHalf::LayerHalf;

 private:
  View enter(const Step& step) const override { return step.slot<JointRows>(); }
};

// Copies the target's rows before the layers that its drafter reads.
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
