// The residual: layers read it and add their outputs to it.
#pragma once

#include "kernels/ops.h"
#include "model/step.h"

namespace octavo {

// Fuses the addition of an output with the next norm: an output stays pending until the next part reads the
// residual.
class ResidualSum {
 public:
  // An output that is not yet added to the residual.
  struct Pending {
    View delta = {};
    Norm norm = {};
    float scale = 1;
    bool replaces = false;  // `norm` applies to residual + delta, not to delta
    View residual_scale = {};
  };

  // `all` is f32 [maximum number of tokens, dim].
  ResidualSum(Backend& backend, View all) : backend_(backend), all_(all) {}

  const View& all() const { return all_; }
  const View& rows() const { return rows_; }
  void see(StepRows rows) { rows_ = all_.rows(rows.first, rows.count); }

  void put(const Pending& pending) { pending_ = pending; }
  const Pending& pending() const { return pending_; }
  // Multiplies the residual by this factor, f32 [1], when the pending output is added.
  void scale(const View& by) { pending_.residual_scale = by; }
  // residual += pending output;  out = norm(residual)
  void read(const Norm& norm, const View& out);
  // residual = norm(residual + pending output);  out = residual
  void replace(const Norm& norm, const View& out);
  void take_in() { read({}, {}); }
  // Adds the pending output, if any, to the residual.
  void settle();
  // out = norm(residual), without the pending output
  void look(const Norm& norm, const View& out) const { add({}, norm, out); }

 private:
  void add(const Pending& pending, const Norm& norm, const View& out) const;

  Backend& backend_;
  View all_, rows_;
  Pending pending_ = {};
};

}  // namespace octavo
