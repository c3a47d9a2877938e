// Attention for caches in which keys are also the values (KvSpec::shared_rows). A thread gathers the rows
// of recent tokens and of compressed entries that a query sees. Then it processes these rows for some heads
// of the query, piece by piece, with an online softmax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/normed.h"
#include "kernels/cpu/scratch_pieces.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kUnitHeads = 16;  // heads of a query that one thread processes
// Rows in a piece; a multiple of the tile width of every instruction set.
constexpr std::int64_t kPieceRows = 128;

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
std::int64_t tile_width(const IsaKernels& kernels) { return 2 * std::int64_t{kernels.lanes}; }

// Working memory of a unit of work. `dim` is the width of a row, padded to full tiles.
struct Work : ScratchPieces {
  Work(std::int64_t dim, std::byte* memory) : ScratchPieces(memory) {
    q = take<float>(kUnitHeads * dim);
    rows = take<float>(kPieceRows * dim);
    panels = take<float>(kPieceRows * dim);
    scores = take<float>(kUnitHeads * kPieceRows);
    sums = take<float>(kUnitHeads * dim);
  }

  float* q;       // [heads][dim]
  float* rows;    // [rows][dim]: the rows as values
  float* panels;  // [tiles][dim][width]: the rows as keys
  float* scores;  // [heads][rows]
  float* sums;    // [heads][dim]: weighted sums of values
};

// Working memory for the selection of a query's tokens.
struct Choice : ScratchPieces {
  Choice(std::int64_t index_dim, std::int64_t entries, std::int64_t width, std::byte* memory)
      : ScratchPieces(memory) {
    q = take<float>(kMaxIndexHeads * index_dim);
    panel = take<float>(index_dim * width);
    row = take<float>(index_dim);
    products = take<float>(kMaxIndexHeads * width);
    scores = take<float>(round_up(entries, width));
    order = take<std::int32_t>(entries);
  }

  float *q, *panel, *row, *products, *scores;
  std::int32_t* order;
};

const std::byte* entry_of(const KvLayer& cache, const CpuAttentionPlan& plan, std::int32_t sequence,
                          std::int64_t entry) {
  const KvSpec& spec = cache.spec;
  const std::int32_t block = plan.block(sequence, entry / spec.entries());
  CHECK(block >= 0 && block < cache.blocks, "block {} of {}", block, cache.blocks);
  return cache.data + block * cache.stride_bytes +
         entry % spec.entries() * spec.head_dim * static_cast<std::int64_t>(size_of(spec.dtype));
}

// Computes c[heads][c_stride] (+)= x[heads][x_stride] * w, where w is [steps][width] with step_stride
// floats between steps.
void multiply(const IsaKernels& kernels, const float* x, std::int64_t x_stride, std::int64_t heads,
              const float* w, std::int64_t steps, std::int64_t step_stride, float* c, std::int64_t c_stride,
              bool accumulate) {
  const auto* const first = reinterpret_cast<const std::byte*>(w);
  for (std::int64_t head = 0, count; head < heads; head += count) {
    count = std::min<std::int64_t>(heads - head, kernels.tile_rows);
    kernels.tiles[static_cast<int>(Operand::f32)][count - 1]({
        .x = reinterpret_cast<const std::byte*>(x + head * x_stride),
        .x_row_stride = x_stride * 4,
        .x_unit_stride = 4,
        .w = &first,
        .segments = 1,
        .w_offset = 0,
        .steps = steps,
        .step_stride = step_stride * 4,
        .vector_stride = kernels.lanes * 4,
        .c = c + head * c_stride,
        .c_stride = c_stride,
        .accumulate = accumulate,
    });
  }
}

std::int64_t position_of(const CpuAttentionPlan& plan, std::int32_t sequence, std::int64_t query) {
  return plan.position(sequence, (query - plan.first_query(sequence)) * plan.group());
}

// Attention of one query, for the heads [head, head + heads).
class RowUnit {
 public:
  RowUnit(const AttentionArgs& args, const IsaKernels& kernels, std::int64_t query, std::int64_t head,
          Work& work)
      : args_(args),
        kernels_(kernels),
        plan_(static_cast<const CpuAttentionPlan&>(args.plan)),
        entry_plan_(static_cast<const CpuAttentionPlan*>(args.entry_plan)),
        query_(query),
        head_(head),
        heads_(std::min(kUnitHeads, args.q.size(1) - head)),
        width_(tile_width(kernels)),
        dim_(args.cache.spec.score_dim()),
        padded_(round_up(dim_, width_)),
        work_(work) {}

  void run() {
    const std::int32_t sequence = plan_.sequence_of(query_);
    const std::int64_t position = position_of(plan_, sequence, query_);
    kernels_.widen(element(args_.q), format_of(args_.q.dtype), work_.q, heads_ * dim_);
    std::fill_n(work_.sums, heads_ * padded_, 0.0F);
    std::fill_n(most_, kUnitHeads, -std::numeric_limits<float>::infinity());
    std::fill_n(sum_, kUnitHeads, 0.0F);
    for (std::int64_t t = args_.window > 0 ? std::max<std::int64_t>(0, position - args_.window + 1) : 0;
         t <= position; ++t)
      add(entry_of(args_.cache, plan_, sequence, t));
    const std::int64_t entries = entry_plan_ != nullptr ? (position + 1) / args_.entries.spec.rate : 0;
    const auto* chosen = args_.chosen ? args_.chosen.row<std::int32_t>(query_) : nullptr;
    const std::int64_t seen = chosen != nullptr ? std::min(entries, args_.chosen.size(1)) : entries;
    for (std::int64_t i = 0; i < seen; ++i)
      add(entry_of(args_.entries, *entry_plan_, sequence, chosen != nullptr ? chosen[i] : i));
    meet();
    finish();
  }

 private:
  std::byte* element(const View& view) const {
    return static_cast<std::byte*>(view.data) +
           (query_ * view.stride[0] + head_ * dim_) * static_cast<std::int64_t>(size_of(view.dtype));
  }

  void add(const std::byte* row) {
    float* const to = work_.rows + rows_ * padded_;
    kernels_.widen(row, format_of(args_.cache.spec.dtype), to, dim_);
    std::fill_n(to + dim_, padded_ - dim_, 0.0F);
    if (++rows_ == kPieceRows) meet();
  }

  void meet() {
    if (rows_ == 0) return;
    for (std::int64_t tile = 0; tile < rows_; tile += width_) {
      float* const panel = work_.panels + tile * dim_;
      for (std::int64_t d = 0; d < dim_; ++d)
        for (std::int64_t i = 0; i < width_; ++i)
          panel[d * width_ + i] = tile + i < rows_ ? work_.rows[(tile + i) * padded_ + d] : 0;
      multiply(kernels_, work_.q, dim_, heads_, panel, dim_, width_, work_.scores + tile, kPieceRows, false);
    }
    for (std::int64_t h = 0; h < heads_; ++h) weigh(h);
    for (std::int64_t d = 0; d < padded_; d += width_)
      multiply(kernels_, work_.scores, kPieceRows, heads_, work_.rows + d, rows_, padded_, work_.sums + d,
               padded_, true);
    rows_ = 0;
  }

  // Converts the scores of one head to weights of values, relative to the greatest score so far.
  void weigh(std::int64_t h) {
    float* const scores = work_.scores + h * kPieceRows;
    float most = most_[h];
    for (std::int64_t i = 0; i < rows_; ++i) most = std::max(most, scores[i] *= args_.scale);
    const float before = std::exp(most_[h] - most);
    sum_[h] *= before;
    for (std::int64_t i = 0; i < rows_; ++i) sum_[h] += scores[i] = std::exp(scores[i] - most);
    float* const sums = work_.sums + h * padded_;
    for (std::int64_t d = 0; before != 1 && d < dim_; ++d) sums[d] *= before;
    most_[h] = most;
  }

  void finish() {
    for (std::int64_t h = 0; h < heads_; ++h) {
      float* const sums = work_.sums + h * padded_;
      if (args_.sinks) sum_[h] += std::exp(args_.sinks.as<float>()[head_ + h] - most_[h]);
      for (std::int64_t d = 0; d < dim_; ++d) sums[d] /= sum_[h];
      const auto bytes = static_cast<std::int64_t>(size_of(args_.out.dtype));
      kernels_.narrow(sums, nullptr, format_of(args_.out.dtype), element(args_.out) + h * dim_ * bytes, dim_);
    }
  }

  const AttentionArgs& args_;
  const IsaKernels& kernels_;
  const CpuAttentionPlan& plan_;
  const CpuAttentionPlan* entry_plan_;
  const std::int64_t query_, head_, heads_, width_, dim_, padded_;
  Work& work_;
  std::int64_t rows_ = 0;
  float most_[kUnitHeads], sum_[kUnitHeads];
};

void choose(const ChooseTokensArgs& args, const IsaKernels& kernels, std::int64_t query, Choice& work) {
  const auto& plan = static_cast<const CpuAttentionPlan&>(args.plan);
  const KvSpec& spec = args.cache.spec;
  const std::int32_t sequence = plan.sequence_of(query);
  const std::int64_t entries = (position_of(plan, sequence, query) + 1) / spec.rate,
                     most = args.chosen.size(1);
  auto* const chosen = args.chosen.row<std::int32_t>(query);
  if (entries <= most) {
    std::iota(chosen, chosen + entries, 0);
    std::fill(chosen + entries, chosen + most, kNoToken);
    return;
  }
  const std::int64_t heads = args.q.size(1), dim = spec.index_dim, width = tile_width(kernels);
  const auto element = static_cast<std::int64_t>(size_of(spec.dtype));
  kernels.widen(static_cast<const std::byte*>(args.q.data) +
                    query * args.q.stride[0] * static_cast<std::int64_t>(size_of(args.q.dtype)),
                format_of(args.q.dtype), work.q, heads * dim);
  for (std::int64_t first = 0; first < entries; first += width) {
    for (std::int64_t i = 0; i < width; ++i) {
      if (first + i < entries)
        kernels.widen(entry_of(args.cache, plan, sequence, first + i) + spec.score_dim() * element,
                      format_of(spec.dtype), work.row, dim);
      else
        std::fill_n(work.row, dim, 0.0F);
      for (std::int64_t d = 0; d < dim; ++d) work.panel[d * width + i] = work.row[d];
    }
    multiply(kernels, work.q, dim, heads, work.panel, dim, width, work.products, width, false);
    float* const scores = work.scores + first;
    std::fill_n(scores, width, 0.0F);
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < width; ++i)
        scores[i] += args.weights.row<float>(query)[h] * std::max(work.products[h * width + i], 0.0F);
  }
  keep_best(work.scores, entries, work.order, most, chosen);
}

std::size_t choice_bytes(const KvSpec& spec, std::int64_t tokens, const IsaKernels& kernels) {
  return Choice(spec.index_dim, tokens / spec.rate, tile_width(kernels), nullptr).bytes;
}
std::size_t work_bytes(const KvSpec& spec, const IsaKernels& kernels) {
  return Work(round_up(spec.score_dim(), tile_width(kernels)), nullptr).bytes;
}

struct Angles {
  static constexpr std::int64_t kPairs = kMaxHeadDim / 2;
  float cos[kPairs], sin[kPairs];

  Angles(const View& frequencies, float scale, std::int32_t position, bool back) {
    for (std::int64_t i = 0; i < frequencies.size(0); ++i) {
      const float angle = static_cast<float>(position) * frequencies.as<float>()[i];
      cos[i] = std::cos(angle) * scale;
      sin[i] = std::sin(angle) * scale * (back ? -1.0F : 1.0F);
    }
  }
  void rotate_head(float* end, std::int64_t pairs) const {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float a = end[2 * i], b = end[2 * i + 1];
      end[2 * i] = a * cos[i] - b * sin[i];
      end[2 * i + 1] = b * cos[i] + a * sin[i];
    }
  }
};

void normed_and_rotated(const IsaKernels& kernels, const void* x, Format format, std::int64_t dim,
                        const Norm& norm, const Angles& angles, std::int64_t pairs, float* out) {
  read_normed(kernels, x, format, dim, norm, out);
  angles.rotate_head(out + dim - 2 * pairs, pairs);
}

}  // namespace

std::size_t row_attention_bytes(const AttentionLimits& limits, const IsaKernels& kernels) {
  const std::size_t choice =
      limits.kv.index_dim > 0 ? choice_bytes(limits.kv, limits.max_length, kernels) : 0;
  return std::max(choice, work_bytes(limits.kv, kernels));
}

void attend_rows(Stream& stream, const AttentionArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const IsaKernels& kernels = cpu.kernels();
  const std::int64_t units = (args.q.size(1) + kUnitHeads - 1) / kUnitHeads;
  const std::int64_t dim = round_up(args.cache.spec.score_dim(), tile_width(kernels));
  cpu.pool().for_units(args.q.size(0) * units, [&](int rank, std::int64_t unit) {
    Work work(dim, cpu.scratch(rank, work_bytes(args.cache.spec, kernels)));
    RowUnit(args, kernels, unit / units, unit % units * kUnitHeads, work).run();
  });
}

void choose_entries(Stream& stream, const ChooseTokensArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const IsaKernels& kernels = cpu.kernels();
  const KvSpec& spec = args.cache.spec;
  const std::int64_t tokens = static_cast<const CpuAttentionPlan&>(args.plan).most_tokens();
  cpu.pool().for_units(args.q.size(0), [&](int rank, std::int64_t query) {
    Choice work(spec.index_dim, tokens / spec.rate, tile_width(kernels),
                cpu.scratch(rank, choice_bytes(spec, tokens, kernels)));
    choose(args, kernels, query, work);
  });
}

void rotate_ends(Stream& stream, const RotateEndsArgs& args) {
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const std::int64_t heads = args.x.size(1), dim = args.x.size(2);
  const Format format = format_of(args.x.dtype);
  for_pieces(
      pool_of(stream), args.x.size(0), heads, kUnitHeads,
      [&](std::int64_t t, std::int64_t head, std::int64_t count) {
        const Angles angles(args.frequencies, args.scale, args.positions.as<std::int32_t>()[t], args.back);
        alignas(64) float values[kMaxHeadDim];
        for (std::int64_t h = head; h < head + count; ++h) {
          std::byte* const x =
              static_cast<std::byte*>(args.x.data) +
              (t * args.x.stride[0] + h * dim) * static_cast<std::int64_t>(size_of(args.x.dtype));
          normed_and_rotated(kernels, x, format, dim, args.norm, angles, args.frequencies.size(0), values);
          kernels.narrow(values, nullptr, format, x, dim);
        }
      });
}

void store_rows(Stream& stream, const StoreRowsArgs& args) {
  check_indices("slot", args.slots, args.cache.blocks * args.cache.spec.block_size);
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const KvSpec& spec = args.cache.spec;
  const std::int64_t dim = args.x.size(1);
  for_pieces(pool_of(stream), args.x.size(0), dim, dim, [&](std::int64_t t, std::int64_t, std::int64_t) {
    const std::int32_t position = args.positions.as<std::int32_t>()[t];
    if ((position + 1) % spec.rate != 0) return;
    const Angles angles(args.frequencies, args.scale, position + 1 - spec.rate, false);
    alignas(64) float row[kMaxHeadDim];
    normed_and_rotated(kernels, args.x.row<float>(t), Format::f32, dim, args.norm, angles,
                       args.frequencies.size(0), row);
    const std::int64_t slot = args.slots.as<std::int64_t>()[t];
    const std::int64_t number = slot % spec.block_size / spec.rate * spec.head_dim + args.first;
    kernels.narrow(row, nullptr, format_of(spec.dtype),
                   args.cache.data + slot / spec.block_size * args.cache.stride_bytes +
                       number * static_cast<std::int64_t>(size_of(spec.dtype)),
                   dim);
  });
}

}  // namespace octavo::cpu
