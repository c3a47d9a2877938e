// Residual streams: what a network does with the residual before and after the layers.
#pragma once

#include "model/part.h"
#include "model/residual/residual.h"

namespace octavo {

struct ResidualRows {};  // f32 [tokens, dim]

// One residual stream, which is the usual case. Networks with several streams have subclasses.
class ResidualScheme : public NetworkPart {
 public:
  explicit ResidualScheme(std::int64_t dim) : dim_(dim) {}

  void reserve(Arena arena) const override { arena.rows<ResidualRows>(DType::f32, dim_); }
  // The residual that layers read and add to, f32 [maximum number of tokens, dim]. handed_on() is what the
  // next stage receives, which may be larger.
  virtual View residual(const Slots& slots) const { return slots.all<ResidualRows>(); }
  virtual View handed_on(const Slots& slots) const { return residual(slots); }
  // Called in each step of the first pipeline stage, after the phases that write the inputs (embeddings) and
  // before the layers.
  virtual void begin(const Step&) const {}
  // Called in each step of each pipeline stage, after the stage's layers.
  virtual void end(const Step& step) const { step.residual.take_in(); }

 protected:
  std::int64_t dim() const { return dim_; }

 private:
  std::int64_t dim_;
};

class BeginResidual final : public Phase {
 public:
  // `scheme` must outlive this object.
  explicit BeginResidual(const ResidualScheme& scheme) : scheme_(scheme) {}

  void run(const Step& step) const override { scheme_.begin(step); }

 private:
  const ResidualScheme& scheme_;
};

}  // namespace octavo
