// Phases that pass data from a layer to a later layer outside of the residual.
#pragma once

#include <memory>

#include "model/residual/half.h"
#include "model/spec.h"

namespace octavo {

// Slot, f32 [tokens, dim]: the residual before layer `number`, for Blend.
struct EarlierResidual {};

class KeepResidual final : public Phase {
 public:
  KeepResidual(int layer, std::int64_t dim) : layer_(layer), dim_(dim) {}

  void reserve(Arena arena) const override;
  void run(const Step& step) const override;

 private:
  int layer_;
  std::int64_t dim_;
};

// Sets the residual to a weighted sum of the residual and an earlier layer's residual.
class BlendResidual final : public Phase {
 public:
  explicit BlendResidual(const Blend& spec) : spec_(spec), rest_(constant_vector({1 - spec.share})) {}

  void list(ParameterList& list) override { list.add(rest_); }
  bool spans_layers() const override { return true; }
  void run(const Step& step) const override;

 private:
  Blend spec_;
  VectorParameter rest_;
};

// Slot, f32 [tokens, dim]: state `number` of JoinStates.
struct LoopState {};

class JoinedStates final : public Phase {
 public:
  // `top` makes the names of tensors outside of layers.
  JoinedStates(const JoinStates& spec, const Namer& top, std::int64_t dim);

  void list(ParameterList& list) override { list.add(norm_, start_); }
  void reserve(Arena arena) const override;
  bool spans_layers() const override { return true; }
  void run(const Step& step) const override;

 private:
  JoinStates spec_;
  std::int64_t dim_;
  NormParameter norm_;
  NormParameter start_;  // 0 * x + the first state; only if JoinStates::first
};

// Slot for the output of a shortcut, until the end of the next layer. It has the shape of HalfOutput.
struct ShortcutOutput {};

// Experts that read the input of the previous half (LayerSpec::shortcut).
class Shortcut final : public Phase {
 public:
  Shortcut(std::unique_ptr<Block> block, std::int64_t dim) : block_(std::move(block)), dim_(dim) {}

  void list(ParameterList& list) override { block_->list(list); }
  void add_blocks(std::vector<Block*>& all) const override { all.push_back(block_.get()); }
  void reserve(Arena arena) const override;
  bool spans_layers() const override { return true; }
  void run(const Step& step) const override;

 private:
  std::unique_ptr<Block> block_;
  std::int64_t dim_;
};

// Adds the shortcut's output at the end of the next layer.
class EndShortcut final : public Phase {
 public:
  void run(const Step& step) const override;
};

}  // namespace octavo
