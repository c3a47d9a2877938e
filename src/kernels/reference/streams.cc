// Operators on residual streams.
#include <array>
#include <cmath>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {
namespace {

double coefficient(const View& coefs, std::int64_t row, const View& router, std::int64_t t) {
  double sum = 0;
  for (std::int64_t p = 0; p < router.size(1); ++p)
    sum += at(coefs, {row, p}) * std::tanh(at(router, {t, p}));
  return sum;
}

double mean_square(const View& x, std::int64_t row) {
  double sum = 0;
  for (std::int64_t k = 0; k < x.size(1); ++k) sum += at(x, {row, k}) * at(x, {row, k});
  return sum / static_cast<double>(x.size(1));
}

}  // namespace

void predict_streams(Stream&, const PredictStreamsArgs& args) {
  const std::int64_t streams = args.x.size(1);
  for (std::int64_t t = 0; t < args.x.size(0); ++t)
    for (std::int64_t k = 0; k < args.x.size(2); ++k) {
      std::array<double, kMaxStreams> sums{};
      for (std::int64_t j = 0; j < streams; ++j) {
        double& sum = sums[static_cast<std::size_t>(j)];
        sum = at(args.x, {t, j, k});
        for (std::int64_t i = 0; i < streams; ++i)
          sum += at(args.x, {t, i, k}) * coefficient(args.coefs, j * streams + i, args.router, t);
      }
      for (std::int64_t j = 0; j < streams; ++j) put(args.x, {t, j, k}, sums[static_cast<std::size_t>(j)]);
    }
}

void correct_streams(Stream&, const CorrectStreamsArgs& args) {
  for (std::int64_t t = 0; t < args.x.size(0); ++t)
    for (std::int64_t k = 0; k < args.x.size(2); ++k) {
      const double before = at(args.before, {t, k}), change = at(args.x, {t, 0, k}) - before;
      for (std::int64_t j = 0; j < args.x.size(1); ++j) {
        const double own = j == 0 ? before : at(args.x, {t, j, k});
        put(args.x, {t, j, k}, own + change * (1 + coefficient(args.coefs, j, args.router, t)));
      }
      put(args.out, {t, k}, at(args.x, {t, 0, k}) * (args.scale ? at(args.scale, {k}) : 1));
    }
}

void match_size(Stream&, const MatchSizeArgs& args) {
  for (std::int64_t i = 0; i < args.x.size(0); ++i) {
    const double factor =
        std::sqrt(mean_square(args.like, i)) / std::sqrt(std::max(mean_square(args.x, i), 1e-5));
    for (std::int64_t k = 0; k < args.x.size(1); ++k) put(args.x, {i, k}, at(args.x, {i, k}) * factor);
  }
}

}  // namespace octavo::reference
