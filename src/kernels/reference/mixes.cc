// Operators that mix rows with weights which depend on the rows.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {

void mix_sources(Stream&, const MixSourcesArgs& args) {
  const std::int64_t sources = args.x.size(1), dim = args.x.size(2), all = sources + (args.last ? 1 : 0);
  for (std::int64_t t = 0; t < args.x.size(0); ++t) {
    const auto element = [&](std::int64_t source, std::int64_t k) {
      return source < sources ? at(args.x, {t, source, k}) : at(args.last, {t, k});
    };
    std::array<double, kMaxSources> shares{};
    double most = -INFINITY, sum = 0;
    for (std::int64_t source = 0; source < all; ++source) {
      double squares = 0, product = 0;
      for (std::int64_t k = 0; k < dim; ++k) {
        squares += element(source, k) * element(source, k);
        product += element(source, k) * at(args.query, {k});
      }
      double& score = shares[static_cast<std::size_t>(source)];
      score = product / std::sqrt(squares / static_cast<double>(dim) + double{args.eps});
      most = std::max(most, score);
    }
    for (std::int64_t source = 0; source < all; ++source) {
      double& share = shares[static_cast<std::size_t>(source)];
      share = std::exp(share - most);
      sum += share;
    }
    for (std::int64_t k = 0; k < dim; ++k) {
      double mixed = 0;
      for (std::int64_t source = 0; source < all; ++source)
        mixed += shares[static_cast<std::size_t>(source)] / sum * element(source, k);
      put(args.out, {t, k}, mixed);
    }
  }
}

void mix_heads(Stream&, const MixHeadsArgs& args) {
  const std::int64_t dim = args.q.size(2);
  for (std::int64_t t = 0; t < args.q.size(0); ++t)
    for (std::int64_t head = 0; head < args.q.size(1); ++head) {
      double score = at(args.bias, {head});
      for (std::int64_t k = 0; k < dim; ++k) score += at(args.q, {t, head, k}) * at(args.weight, {head, k});
      const double share = 1 / (1 + std::exp(-score));
      for (std::int64_t k = head * dim; k < (head + 1) * dim; ++k) {
        const double second = at(args.second, {t, k});
        put(args.y, {t, k}, second + share * (at(args.first, {t, k}) - second));
      }
    }
}

}  // namespace octavo::reference
