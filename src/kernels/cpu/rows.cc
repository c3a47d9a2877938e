// Operators that process each row separately. Each thread processes some of the rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/reference/reference.h"

namespace octavo::cpu {
namespace {

// Number of elements per thread, below which another thread saves no time.
constexpr std::int64_t kGrainElements = 16384;
constexpr std::int64_t kAddColumns = 1024;

template <class Body>
void for_rows(Stream& stream, std::int64_t rows, std::int64_t row_elements, Body&& body) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrainElements / std::max<std::int64_t>(1, row_elements));
  pool_of(stream).for_ranges(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

std::byte* row_address(const View& view, std::int64_t row) {
  return static_cast<std::byte*>(view.data) +
         row * view.stride[0] * static_cast<std::int64_t>(size_of(view.dtype));
}

// Computes y = change(x) for rows in one format. change(kernels, numbers, row, column, count) receives
// pieces of a row in f32.
template <class Change>
void change_rows(Stream& stream, const View& x, const View& y, Change&& change) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  constexpr std::int64_t kColumns = 1024;
  const Format format = format_of(y.dtype);
  const auto element_bytes = static_cast<std::int64_t>(size_of(y.dtype));
  for_pieces(pool_of(stream), y.size(0), y.size(1), kColumns,
             [&](std::int64_t row, std::int64_t column, std::int64_t count) {
               alignas(64) float numbers[kColumns];
               kernels.widen(row_address(x, row) + column * element_bytes, format, numbers, count);
               change(kernels, numbers, row, column, count);
               kernels.narrow(numbers, nullptr, format, row_address(y, row) + column * element_bytes, count);
             });
}

NormRow norm_row(const Norm& norm) {
  if (norm.kind == NormKind::none) return {NormKind::none, 0, nullptr, nullptr};
  return {norm.kind, norm.eps, norm.weight.as<float>(), norm.bias ? norm.bias.as<float>() : nullptr};
}

}  // namespace

void own_ids(Stream&, const OwnIdsArgs& args) {
  const auto* ids = args.ids.as<std::int32_t>();
  std::transform(ids, ids + args.ids.size(0), args.own.as<std::int32_t>(),
                 [&](std::int32_t id) { return args.rows.has(id) ? id - args.rows.first : 0; });
}

void keep_own_rows(Stream&, const KeepOwnRowsArgs& args) {
  for (std::int64_t i = 0; i < args.x.size(0); ++i)
    if (!args.rows.has(args.ids.as<std::int32_t>()[i]))
      std::fill_n(args.x.row<float>(i), args.x.size(1), 0.0F);
}

void embed(Stream& stream, const EmbedArgs& args) {
  check_indices("token id", args.ids, args.table.rows());
  if (args.position_table != nullptr) check_indices("position", args.positions, args.position_table->rows());
  if (args.type_table != nullptr) check_indices("token type", args.types, args.type_table->rows());
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t dim = args.out.size(1);
  const auto& table = static_cast<const CpuWeight&>(args.table);
  const auto* positions = static_cast<const CpuWeight*>(args.position_table);
  const auto* types = static_cast<const CpuWeight*>(args.type_table);
  for_rows(stream, args.out.size(0), dim, [&](std::int64_t i) {
    for (std::int64_t column = 0; column < dim; column += kReadColumns) {
      const std::int64_t count = std::min(kReadColumns, dim - column);
      float* out = args.out.row<float>(i) + column;
      table.read(args.ids.as<std::int32_t>()[i], column, count, kernels, out);
      if (args.scale != 1) kernels.scale_logits(out, args.scale, 0, count);
      const auto add = [&](const CpuWeight* more, const View& rows) {
        if (more == nullptr) return;
        alignas(64) float learned[kReadColumns];
        more->read(rows.as<std::int32_t>()[i], column, count, kernels, learned);
        kernels.narrow(out, learned, Format::f32, out, count);
      };
      add(positions, args.positions);
      add(types, args.types);
    }
  });
}

void add_norm(Stream& stream, const AddNormArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t dim = args.residual.size(1);
  for_rows(stream, args.residual.size(0), dim, [&](std::int64_t i) {
    kernels.add_norm({.dim = dim,
                      .residual = args.residual.row<float>(i),
                      .delta = args.delta ? row_address(args.delta, i) : nullptr,
                      .delta_format = args.delta ? format_of(args.delta.dtype) : Format::f32,
                      .delta_scale = args.delta_scale,
                      .delta_norm = norm_row(args.delta_norm),
                      .residual_scale = args.residual_scale ? *args.residual_scale.as<float>() : 1,
                      .norm = norm_row(args.norm),
                      .replace = args.replace,
                      .out = args.out ? row_address(args.out, i) : nullptr,
                      .out_format = args.out ? format_of(args.out.dtype) : Format::f32});
  });
}

void sum_squares(Stream& stream, const SumSquaresArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  constexpr std::int64_t kColumns = 1024;
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.x.dtype));
  const std::int64_t dim = args.x.size(1);
  for_rows(stream, args.x.size(0), dim, [&](std::int64_t row) {
    alignas(64) float numbers[kColumns];
    double sum = 0;
    for (std::int64_t column = 0; column < dim; column += kColumns) {
      const std::int64_t count = std::min(kColumns, dim - column);
      kernels.widen(row_address(args.x, row) + column * element_bytes, format_of(args.x.dtype), numbers,
                    count);
      for (std::int64_t k = 0; k < count; ++k) sum += double{numbers[k]} * numbers[k];
    }
    *args.sums.row<float>(row) = static_cast<float>(sum * args.factor);
  });
}

void norm_by_squares(Stream& stream, const NormBySquaresArgs& args) {
  const auto* weight = args.weight.as<float>();
  change_rows(
      stream, args.x, args.x,
      [&](const IsaKernels&, float* numbers, std::int64_t row, std::int64_t column, std::int64_t count) {
        const float mean = *args.sums.row<float>(row) / static_cast<float>(args.count);
        const float scale = 1 / std::sqrt(mean + args.eps);
        for (std::int64_t k = 0; k < count; ++k) numbers[k] = numbers[k] * scale * weight[column + k];
      });
}

void activate(Stream& stream, const ActivateArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  constexpr std::int64_t kColumns = 2048;
  const std::int64_t h = args.y.size(1);
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.x.dtype));
  ActivateRule rule{args.activation, args.alpha, args.limit};
  if (args.activation == Activation::xielu) {
    const auto softplus = [&](std::int64_t i) { return std::log1p(std::exp(args.slopes.as<float>()[i])); };
    rule.alpha = softplus(0);
    rule.limit = 0.5F + softplus(1);
  }
  for_pieces(pool_of(stream), args.y.size(0), h, kColumns,
             [&](std::int64_t i, std::int64_t column, std::int64_t count) {
               const std::byte* x = row_address(args.x, i) + column * element_bytes;
               kernels.activate(x, args.gated ? x + h * element_bytes : nullptr, format_of(args.y.dtype),
                                rule, row_address(args.y, i) + column * element_bytes, count);
             });
}

void keep_tail(Stream& stream, const KeepTailArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  constexpr std::int64_t kColumns = 1024;
  const Format format = format_of(args.x.dtype);
  const std::int64_t dim = args.x.size(1);
  for_rows(stream, args.x.size(0), dim, [&](std::int64_t i) {
    const NormStats stats = kernels.norm_stats(row_address(args.x, i), format, dim, NormKind::layer, 0);
    const float cut = stats.mean + args.deviations / stats.scale;
    for (std::int64_t column = 0; column < dim; column += kColumns) {
      const std::int64_t count = std::min(kColumns, dim - column);
      std::byte* const piece =
          row_address(args.x, i) + column * static_cast<std::int64_t>(size_of(args.x.dtype));
      alignas(64) float x[kColumns];
      kernels.widen(piece, format, x, count);
      for (std::int64_t k = 0; k < count; ++k) x[k] -= cut;
      kernels.activate(x, nullptr, Format::f32, {Activation::relu, 1, 0}, x, count);
      kernels.narrow(x, nullptr, format, piece, count);
    }
  });
}

void scale_rows(Stream& stream, const ScaleRowsArgs& args) {
  if (args.rows) check_indices("row", args.rows, args.factors.size(0));
  const auto* const rows = args.rows ? args.rows.as<std::int32_t>() : nullptr;
  change_rows(stream, args.x, args.y,
              [&](const IsaKernels& kernels, float* x, std::int64_t i, std::int64_t, std::int64_t count) {
                kernels.scale_logits(x, args.factors.as<float>()[rows != nullptr ? rows[i] : i], 0, count);
              });
}

void clamp(Stream& stream, const ClampArgs& args) {
  change_rows(stream, args.x, args.y,
              [&](const IsaKernels&, float* x, std::int64_t, std::int64_t column, std::int64_t count) {
                const float* least = args.least.as<float>() + column;
                const float* most = args.most.as<float>() + column;
                for (std::int64_t k = 0; k < count; ++k)
                  x[k] = x[k] < least[k] ? least[k] : x[k] > most[k] ? most[k] : x[k];
              });
}

void softmax(Stream& stream, const SoftmaxArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  constexpr std::int64_t kColumns = 1024;
  const Format format = format_of(args.y.dtype);
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.y.dtype));
  const std::int64_t dim = args.x.size(1), width = args.y.size(1);
  for_rows(stream, args.y.size(0), width, [&](std::int64_t row) {
    alignas(64) float numbers[kColumns];
    const auto for_each_piece = [&](auto&& body) {
      for (std::int64_t first = 0; first < dim; first += kColumns) {
        const std::int64_t count = std::min(kColumns, dim - first);
        kernels.widen(row_address(args.x, row) + first * element_bytes, format, numbers, count);
        body(first, count);
      }
    };
    float most = -std::numeric_limits<float>::infinity();
    for_each_piece([&](std::int64_t, std::int64_t count) {
      most = std::max(most, *std::max_element(numbers, numbers + count));
    });
    double sum = 0;
    for_each_piece([&](std::int64_t, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) sum += std::exp(numbers[k] - most);
    });
    const auto total = static_cast<float>(sum);
    std::byte* const out = row_address(args.y, row);
    for_each_piece([&](std::int64_t first, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) numbers[k] = std::exp(numbers[k] - most) / total;
      kernels.narrow(numbers, nullptr, format, out + first * element_bytes, count);
    });
    std::memset(out + dim * element_bytes, 0, static_cast<std::size_t>((width - dim) * element_bytes));
  });
}

void gate(Stream& stream, const GateArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  constexpr std::int64_t kColumns = 1024;
  const Format format = format_of(args.y.dtype);
  const View& weight = args.norm.weight;
  const bool normed = args.norm.kind != NormKind::none, own_weights = weight.rank == 2;
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.y.dtype));
  for_pieces(
      pool_of(stream), args.y.size(0), args.y.size(1), normed ? weight.size(weight.rank - 1) : kColumns,
      [&](std::int64_t i, std::int64_t column, std::int64_t count) {
        const auto at = [&](const View& view) { return row_address(view, i) + column * element_bytes; };
        alignas(64) float x[kMaxGateDim], gate[kColumns];
        const auto open = [&] {
          for (std::int64_t first = 0; first < count; first += kColumns) {
            const std::int64_t columns = std::min(kColumns, count - first);
            kernels.widen(at(args.gate) + first * element_bytes, format, gate, columns);
            if (args.gate_scale != 1)
              for (std::int64_t k = 0; k < columns; ++k) gate[k] *= args.gate_scale;
            kernels.activate(gate, x + first, Format::f32, {args.activation, 1, 0}, x + first, columns);
          }
        };
        const auto normalise = [&](const void* from, Format from_format) {
          NormRow norm = norm_row(args.norm);
          if (own_weights) norm.weight += column;
          kernels.head({.x = from,
                        .format = from_format,
                        .dim = count,
                        .norm = norm,
                        .stats = normed ? kernels.norm_stats(from, from_format, count, norm.kind, norm.eps)
                                        : NormStats{},
                        .cos = nullptr,
                        .sin = nullptr,
                        .rotary = 0,
                        .interleaved = false,
                        .out = x});
        };
        if (args.gate_first) {
          kernels.widen(at(args.x), format, x, count);
          open();
          normalise(x, Format::f32);
        } else {
          normalise(at(args.x), format);
          open();
        }
        kernels.narrow(x, nullptr, format, at(args.y), count);
      });
}

void gather_rows(Stream& stream, const GatherRowsArgs& args) {
  check_indices("row", args.rows, args.x.size(0));
  const std::int64_t dim = args.out.size(1);
  const std::size_t bytes = static_cast<std::size_t>(dim) * size_of(args.x.dtype);
  for_rows(stream, args.out.size(0), dim, [&](std::int64_t i) {
    std::memcpy(row_address(args.out, i), row_address(args.x, args.rows.as<std::int32_t>()[i]), bytes);
  });
}

float pool_divisor(Pool pool, std::int64_t rows) {
  const auto count = static_cast<float>(rows);
  if (pool == Pool::mean) return count;
  if (pool == Pool::sum_by_root) return std::sqrt(count);
  return pool == Pool::weighted ? count * (count + 1) / 2 : 1;
}

void pool(Stream& stream, const PoolArgs& args) {
  check_segments("rows of a sequence", args.starts, args.x.size(0));
  const auto* starts = args.starts.as<std::int32_t>();
  const std::int64_t dim = args.out.size(1);
  for_rows(stream, args.out.size(0), dim, [&](std::int64_t s) {
    const std::int64_t first = args.pool == Pool::last ? starts[s + 1] - 1 : starts[s];
    const std::int64_t past = args.pool == Pool::first ? first + 1 : starts[s + 1];
    float* out = args.out.row<float>(s);
    std::copy_n(args.x.row<float>(first), dim, out);
    for (std::int64_t i = first + 1; i < past; ++i) {
      const float* x = args.x.row<float>(i);
      const auto weight = static_cast<float>(i - first + 1);
      if (args.pool == Pool::max)
        for (std::int64_t k = 0; k < dim; ++k) out[k] = x[k] > out[k] || std::isnan(x[k]) ? x[k] : out[k];
      else if (args.pool == Pool::weighted)
        for (std::int64_t k = 0; k < dim; ++k) out[k] += weight * x[k];
      else
        for (std::int64_t k = 0; k < dim; ++k) out[k] += x[k];
    }
    const float divisor = pool_divisor(args.pool, past - first);
    for (std::int64_t k = 0; k < dim; ++k) out[k] /= divisor;
  });
}

void angles(Stream& stream, const AnglesArgs& args) {
  constexpr std::int64_t kPairs = 64;
  const auto* positions = args.positions.as<std::int32_t>();
  const auto* frequencies = args.frequencies.as<float>();
  for_pieces(pool_of(stream), args.cos.size(0), args.cos.size(1), kPairs,
             [&](std::int64_t i, std::int64_t first, std::int64_t count) {
               float* const cos = args.cos.row<float>(i);
               float* const sin = args.sin.row<float>(i);
               for (std::int64_t pair = first; pair < first + count; ++pair) {
                 const float angle = static_cast<float>(positions[i]) * frequencies[pair];
                 cos[pair] = std::cos(angle) * args.scale;
                 sin[pair] = std::sin(angle) * args.scale;
               }
             });
}

void add_rows(Stream& stream, const AddRowsArgs& args) {
  check_indices("row", args.rows, args.y.size(0));
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const Format x_format = format_of(args.x.dtype), y_format = format_of(args.y.dtype);
  const auto at = [](const View& view, std::int64_t row, std::int64_t column) {
    return static_cast<std::byte*>(view.data) +
           (row * view.stride[0] + column) * static_cast<std::int64_t>(size_of(view.dtype));
  };
  for_pieces(pool_of(stream), args.x.size(0), args.x.size(1), kAddColumns,
             [&](std::int64_t x_row, std::int64_t column, std::int64_t count) {
               if (!args.adds(x_row)) return;
               alignas(64) float x[kAddColumns], y[kAddColumns];
               std::byte* const sum = at(args.y, args.rows.as<std::int32_t>()[x_row], column);
               kernels.widen(at(args.x, x_row, column), x_format, x, count);
               kernels.widen(sum, y_format, y, count);
               kernels.narrow(y, x, y_format, sum, count);
             });
}

// Uses the reference implementation, which is fast enough for a few ids.
void put_sampled(Stream& stream, const PutSampledArgs& args) { reference::put_sampled(stream, args); }

void scale_logits(Stream& stream, const ScaleLogitsArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  for_pieces(pool_of(stream), args.logits.size(0), args.logits.size(1), kGrainElements,
             [&](std::int64_t i, std::int64_t column, std::int64_t count) {
               kernels.scale_logits(args.logits.row<float>(i) + column, args.scale, args.soft_cap, count);
             });
}

}  // namespace octavo::cpu
