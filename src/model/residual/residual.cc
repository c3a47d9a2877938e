#include "model/residual/residual.h"

#include <utility>

namespace octavo {

void ResidualSum::read(const Norm& norm, const View& out) { add(std::exchange(pending_, {}), norm, out); }

void ResidualSum::replace(const Norm& norm, const View& out) {
  pending_.norm = norm;
  pending_.replaces = true;
  read({}, out);
}

void ResidualSum::settle() {
  if (pending_.delta || pending_.norm.kind != NormKind::none) take_in();
}

void ResidualSum::add(const Pending& pending, const Norm& norm, const View& out) const {
  const bool twice = pending.replaces && norm.kind != NormKind::none;
  backend_.ops.add_norm(*backend_.stream, {.residual = rows_,
                                           .delta = pending.delta,
                                           .delta_scale = pending.scale,
                                           .delta_norm = pending.replaces ? Norm{} : pending.norm,
                                           .residual_scale = pending.residual_scale,
                                           .norm = pending.replaces ? pending.norm : norm,
                                           .replace = pending.replaces,
                                           .out = twice ? View{} : out});
  if (twice) add({}, norm, out);
}

}  // namespace octavo
