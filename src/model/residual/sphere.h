// Halves of layers that keep the residual at length 1 (SphereStep), and the input of a stack of such layers
// that runs several times (LoopInput).
#pragma once

#include <memory>
#include <string>

#include "model/residual/half.h"
#include "model/spec.h"

namespace octavo {

class SphereHalf final : public LayerHalf {
 public:
  // `tensor` is the name of the vector of SphereStep.
  SphereHalf(std::unique_ptr<Block> block, const SphereStep& spec, const Namer& name,
             const std::string& tensor, std::int64_t dim);

  void list(ParameterList& list) override;

 private:
  void leave(const Step& step, const View& out) const override;

  NormParameter rest_, share_, unit_;  // (1 - a) * unit(x), a * unit(F(x)), unit(x)
};

// Slot, f32 [tokens, dim]: the residual before the first run of the stack.
struct LoopStart {};

class AddLoopStart final : public Phase {
 public:
  AddLoopStart(const LoopInput& spec, std::int64_t dim);

  void list(ParameterList& list) override { list.add(unit_); }
  void reserve(Arena arena) const override;
  bool spans_layers() const override { return true; }
  void run(const Step& step) const override;

 private:
  bool first_;
  std::int64_t dim_;
  NormParameter unit_;
};

}  // namespace octavo
