// How many residuals a network has, and what becomes of them before the layers and behind them.
#pragma once

#include "model/part.h"
#include "model/residual/residual.h"

namespace octavo {

struct ResidualRows {};  // f32 [tokens, dim]

// One residual.
class ResidualScheme : public NetworkPart {
 public:
  explicit ResidualScheme(std::int64_t dim) : dim_(dim) {}

  void reserve(Arena arena) const override { arena.rows<ResidualRows>(DType::f32, dim_); }
  // Of the most tokens, f32: what layers read and add to, [tokens, dim]; and what a stage hands to the next,
  // which may be more.
  virtual View residual(const Slots& slots) const { return slots.all<ResidualRows>(); }
  virtual View handed_on(const Slots& slots) const { return residual(slots); }
  // Of the first stage, behind the inputs.
  virtual void begin(const Step&) const {}
  // Behind the stage's layers.
  virtual void end(const Step& step) const { step.residual.take_in(); }

 protected:
  std::int64_t dim() const { return dim_; }

 private:
  std::int64_t dim_;
};

// Behind the inputs.
class BeginResidual final : public Phase {
 public:
  // scheme: lives longer.
  explicit BeginResidual(const ResidualScheme& scheme) : scheme_(scheme) {}

  void run(const Step& step) const override { scheme_.begin(step); }

 private:
  const ResidualScheme& scheme_;
};

}  // namespace octavo
