// Several residuals of a token side by side, shared out to the threads by tokens.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kColumns = 256;  // of each stream, at a time

// Of each row of coefs the product with the tanh of token t's router.
void coefficients(const View& coefs, const View& router, std::int64_t t, float* out) {
  float modes[kMaxStreams];
  const std::int64_t streams = router.size(1);
  for (std::int64_t p = 0; p < streams; ++p) modes[p] = std::tanh(router.row<float>(t)[p]);
  for (std::int64_t row = 0; row < coefs.size(0); ++row) {
    out[row] = 0;
    for (std::int64_t p = 0; p < streams; ++p) out[row] += coefs.row<float>(row)[p] * modes[p];
  }
}

}  // namespace

void predict_streams(Stream& stream, const PredictStreamsArgs& args) {
  const std::int64_t streams = args.x.size(1);
  for_pieces(pool_of(stream), args.x.size(0), args.x.size(2), kColumns,
             [&](std::int64_t t, std::int64_t column, std::int64_t count) {
               float coefs[kMaxStreams * kMaxStreams], sums[kMaxStreams][kColumns];
               coefficients(args.coefs, args.router, t, coefs);
               const auto x = [&](std::int64_t j) {
                 return args.x.row<float>(t) + j * args.x.stride[1] + column;
               };
               for (std::int64_t j = 0; j < streams; ++j) {
                 std::copy_n(x(j), count, sums[j]);
                 for (std::int64_t i = 0; i < streams; ++i) {
                   const float coef = coefs[j * streams + i];
                   for (std::int64_t k = 0; k < count; ++k) sums[j][k] += x(i)[k] * coef;
                 }
               }
               for (std::int64_t j = 0; j < streams; ++j) std::copy_n(sums[j], count, x(j));
             });
}

void correct_streams(Stream& stream, const CorrectStreamsArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  for_pieces(pool_of(stream), args.x.size(0), args.x.size(2), kColumns,
             [&](std::int64_t t, std::int64_t column, std::int64_t count) {
               float coefs[kMaxStreams], change[kColumns];
               coefficients(args.coefs, args.router, t, coefs);
               const auto x = [&](std::int64_t j) {
                 return args.x.row<float>(t) + j * args.x.stride[1] + column;
               };
               const float* const before = args.before.row<float>(t) + column;
               for (std::int64_t k = 0; k < count; ++k) change[k] = x(0)[k] - before[k];
               std::copy_n(before, count, x(0));
               for (std::int64_t j = 0; j < args.x.size(1); ++j)
                 for (std::int64_t k = 0; k < count; ++k) x(j)[k] += change[k] * (1 + coefs[j]);
               for (std::int64_t k = 0; k < count; ++k)
                 change[k] = x(0)[k] * (args.scale ? args.scale.as<float>()[column + k] : 1);
               kernels.narrow(
                   change, nullptr, format_of(args.out.dtype),
                   static_cast<std::byte*>(args.out.data) +
                       (t * args.out.stride[0] + column) * static_cast<std::int64_t>(size_of(args.out.dtype)),
                   count);
             });
}

void match_size(Stream& stream, const MatchSizeArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t dim = args.x.size(1);
  const auto inverse = [&](const View& x, std::int64_t row) {
    return kernels.norm_stats(x.row<float>(row), Format::f32, dim, NormKind::rms, 0).scale;
  };
  for_pieces(pool_of(stream), args.x.size(0), dim, dim, [&](std::int64_t i, std::int64_t, std::int64_t) {
    const float factor = std::min(inverse(args.x, i), 1 / std::sqrt(1e-5F)) / inverse(args.like, i);
    float* const x = args.x.row<float>(i);
    for (std::int64_t k = 0; k < dim; ++k) x[k] *= factor;
  });
}

}  // namespace octavo::cpu
