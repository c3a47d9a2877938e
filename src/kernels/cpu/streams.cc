// Operators on residual streams. Each thread processes some of the tokens.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kColumns = 256;  // columns of each stream that are processed at a time

// Computes the products of the rows of coefs with the tanh of token t's router values.
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

namespace {

constexpr std::int64_t kSums = 16;

float dot(const float* a, const float* b, std::int64_t n) {
  float sums[kSums] = {}, sum = 0;
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (std::int64_t k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float more : sums) sum += more;
  return sum;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Divides each row (or each column) of a [streams][streams] matrix by its sum. `step` is the distance
// between elements of a row, and `next` is the distance between rows.
void divide_by_sums(float* matrix, std::int64_t streams, std::int64_t step, std::int64_t next, float eps) {
  for (std::int64_t line = 0; line < streams; ++line) {
    float sum = eps;
    for (std::int64_t i = 0; i < streams; ++i) sum += matrix[line * next + i * step];
    for (std::int64_t i = 0; i < streams; ++i) matrix[line * next + i * step] /= sum;
  }
}

void make_mix(const CollapseStreamsArgs& args, float* mix) {
  const std::int64_t streams = args.x.size(1);
  for (float* row = mix; row < mix + streams * streams; row += streams) {
    const float most = *std::max_element(row, row + streams);
    float sum = 0;
    for (std::int64_t i = 0; i < streams; ++i) sum += row[i] = std::exp(row[i] - most);
    for (std::int64_t i = 0; i < streams; ++i) row[i] = row[i] / sum + args.eps;
  }
  divide_by_sums(mix, streams, streams, 1, args.eps);
  for (int i = 1; i < args.iterations; ++i) {
    divide_by_sums(mix, streams, 1, streams, args.eps);
    divide_by_sums(mix, streams, streams, 1, args.eps);
  }
}

}  // namespace

void collapse_streams(Stream& stream, const CollapseStreamsArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t streams = args.x.size(1), dim = args.x.size(2), all = streams * dim;
  for_pieces(pool_of(stream), args.x.size(0), all, all, [&](std::int64_t t, std::int64_t, std::int64_t) {
    const float* const x = args.x.row<float>(t);
    const float inverse = kernels.norm_stats(x, Format::f32, all, NormKind::rms, args.norm_eps).scale;
    const auto weight = [&](std::int64_t row, std::int64_t kind) {
      return dot(x, args.matrix.row<float>(row), all) * inverse * args.scale.as<float>()[kind] +
             args.base.as<float>()[row];
    };
    float* const out = args.out.row<float>(t);
    std::fill_n(out, dim, 0.0F);
    for (std::int64_t j = 0; j < streams; ++j) {
      const float share = sigmoid(weight(j, 0)) + args.eps;
      for (std::int64_t d = 0; d < dim; ++d) out[d] += share * x[j * dim + d];
    }
    for (std::int64_t j = 0; args.post && j < streams; ++j)
      args.post.row<float>(t)[j] = args.post_scale * sigmoid(weight(streams + j, 1)) + args.post_eps;
    if (!args.mix) return;
    float* const mix = args.mix.row<float>(t);
    for (std::int64_t i = 0; i < streams * streams; ++i) mix[i] = weight(2 * streams + i, 2);
    make_mix(args, mix);
  });
}

void expand_streams(Stream& stream, const ExpandStreamsArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t streams = args.x.size(1);
  for_pieces(pool_of(stream), args.x.size(0), args.x.size(2), kColumns,
             [&](std::int64_t t, std::int64_t column, std::int64_t count) {
               float delta[kColumns], sums[kMaxStreams][kColumns];
               kernels.widen(static_cast<const std::byte*>(args.delta.data) +
                                 (t * args.delta.stride[0] + column) *
                                     static_cast<std::int64_t>(size_of(args.delta.dtype)),
                             format_of(args.delta.dtype), delta, count);
               const auto x = [&](std::int64_t j) {
                 return args.x.row<float>(t) + j * args.x.stride[1] + column;
               };
               for (std::int64_t k = 0; k < streams; ++k) {
                 const float post = args.post.row<float>(t)[k];
                 for (std::int64_t c = 0; c < count; ++c) sums[k][c] = post * delta[c];
                 for (std::int64_t c = 0; !args.mix && c < count; ++c) sums[k][c] += x(k)[c];
                 for (std::int64_t j = 0; args.mix && j < streams; ++j) {
                   const float share = args.mix.row<float>(t)[j * streams + k];
                   for (std::int64_t c = 0; c < count; ++c) sums[k][c] += share * x(j)[c];
                 }
               }
               for (std::int64_t k = 0; k < streams; ++k) std::copy_n(sums[k], count, x(k));
             });
}

void mix_sources(Stream& stream, const MixSourcesArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t sources = args.x.size(1), dim = args.x.size(2), all = sources + (args.last ? 1 : 0);
  for_pieces(pool_of(stream), args.x.size(0), dim, dim, [&](std::int64_t t, std::int64_t, std::int64_t) {
    const auto source = [&](std::int64_t i) {
      return i < sources ? args.x.row<float>(t) + i * args.x.stride[1] : args.last.row<float>(t);
    };
    float shares[kMaxSources], sum = 0;
    for (std::int64_t i = 0; i < all; ++i)
      shares[i] = dot(source(i), args.query.as<float>(), dim) *
                  kernels.norm_stats(source(i), Format::f32, dim, NormKind::rms, args.eps).scale;
    const float most = *std::max_element(shares, shares + all);
    for (std::int64_t i = 0; i < all; ++i) sum += shares[i] = std::exp(shares[i] - most);
    for (std::int64_t column = 0; column < dim; column += kColumns) {
      const std::int64_t count = std::min(kColumns, dim - column);
      float mixed[kColumns] = {};
      for (std::int64_t i = 0; i < all; ++i)
        for (std::int64_t k = 0; k < count; ++k) mixed[k] += shares[i] / sum * source(i)[column + k];
      std::copy_n(mixed, count, args.out.row<float>(t) + column);
    }
  });
}

void mix_heads(Stream& stream, const MixHeadsArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t heads = args.q.size(1), dim = args.q.size(2);
  const Format format = format_of(args.q.dtype);
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.q.dtype));
  const auto address = [&](const View& view, std::int64_t t, std::int64_t column) {
    return static_cast<std::byte*>(view.data) + (t * view.stride[0] + column) * element_bytes;
  };
  for_pieces(pool_of(stream), args.q.size(0), heads * dim, dim,
             [&](std::int64_t t, std::int64_t first, std::int64_t) {
               const std::int64_t head = first / dim;
               float a[kColumns], b[kColumns], score = args.bias.as<float>()[head];
               for (std::int64_t column = 0; column < dim; column += kColumns) {
                 const std::int64_t count = std::min(kColumns, dim - column);
                 kernels.widen(address(args.q, t, first + column), format, a, count);
                 score += dot(a, args.weight.row<float>(head) + column, count);
               }
               const float share = sigmoid(score);
               for (std::int64_t column = first; column < first + dim; column += kColumns) {
                 const std::int64_t count = std::min(kColumns, first + dim - column);
                 kernels.widen(address(args.first, t, column), format, a, count);
                 kernels.widen(address(args.second, t, column), format, b, count);
                 for (std::int64_t k = 0; k < count; ++k) a[k] = b[k] + share * (a[k] - b[k]);
                 kernels.narrow(a, nullptr, format, address(args.y, t, column), count);
               }
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
