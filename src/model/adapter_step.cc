// Applies LoRA adapters to the products of a step.
#include <algorithm>
#include <array>
#include <utility>

#include "model/adapter.h"
#include "model/network.h"

namespace octavo {
namespace {

constexpr std::size_t kAtOnce = 64;  // Maximum number of groups in a grouped product.

struct Lists {
  View adapters;  // i32 [tokens]: index of each token's adapter in StepAdapters; -1: none
  // arguments of a grouped product: i32 [pair_rows], [pair_rows], [kAtOnce + 1]
  View pair_rows, rows, starts;
};
Lists take_lists(Scratch& scratch, std::int64_t tokens, std::int64_t pair_rows) {
  return {.adapters = scratch.take(DType::i32, {tokens}),
          .pair_rows = scratch.take(DType::i32, {pair_rows}),
          .rows = scratch.take(DType::i32, {pair_rows}),
          .starts = scratch.take(DType::i32, {std::int64_t{kAtOnce} + 1})};
}

// Computes delta = low B^T. Each group of rows has its own B.
void multiply_b(Backend& backend, std::span<const AdapterChange* const> changes, const View& low,
                const View& starts, const View& delta) {
  std::array<const Weight*, kAtOnce> b{};
  for (std::size_t i = 0; i < changes[0]->blocks.size(); ++i) {
    for (std::size_t g = 0; g < changes.size(); ++g) b[g] = changes[g]->blocks[i].b.get();
    const AdapterChange::Block& block = changes[0]->blocks[i];
    backend.ops.grouped_matmul(*backend.stream, {.x = low.columns(block.first_column, block.b->cols()),
                                                 .starts = starts,
                                                 .w = std::span(b).first(changes.size()),
                                                 .y = delta.columns(block.first_row, block.b->rows())});
  }
}

}  // namespace

std::int64_t adapter_scratch_bytes(const ModelSpec& spec, DType activation, std::int64_t tokens,
                                   std::int64_t logit_rows, int max_rank) {
  if (max_rank == 0) return 0;
  const auto product_bytes = [&](std::int64_t n, std::int64_t rank, std::int64_t rows) {
    Scratch scratch;
    scratch.take(activation, {n, rank});
    scratch.take(activation, {n, rows});
    return scratch.bytes();
  };
  Scratch low;  // rows of embeddings in the format that the products need
  low.take(DType::f32, {tokens, max_rank});
  std::int64_t most = std::max(low.bytes() + product_bytes(tokens, max_rank, spec.dim),
                               product_bytes(logit_rows, max_rank, spec.vocab));
  Network network = network_of(spec);
  const ParameterList parameters = network.parameters();
  for (const LinearParameter* linear : parameters.linears)
    most = std::max(most,
                    product_bytes(tokens, std::ssize(linear->weight.parts) * max_rank, linear->weight.rows));
  for (const auto& [matrices, chosen] : parameters.experts) {
    const MatrixParameter& w = matrices->front();
    Scratch lists;
    take_lists(lists, tokens, tokens * chosen);
    most = std::max(most,
                    lists.bytes() + product_bytes(tokens * chosen, std::ssize(w.parts) * max_rank, w.rows));
  }
  return most;
}

void add_changes(Backend& backend, const StepAdapters& all, Scratch scratch, const View& x, std::size_t index,
                 const View& y) {
  std::array<const Weight*, kAtOnce> a{};
  std::array<const AdapterChange*, kAtOnce> changes{};
  const Scratch empty = scratch;
  for (std::size_t next = 0; next < all.adapters.size();) {
    // Takes the next adapters that change this product, in order.
    const std::size_t begin = next;
    std::size_t count = 0;
    for (; next < all.adapters.size() && count < kAtOnce; ++next, ++count) {
      const AdapterChange& change = (*all.adapters[next])[index];
      if (!change.a) break;
      a[count] = change.a.get();
      changes[count] = &change;
    }
    if (count == 0) {
      ++next;
      continue;
    }
    const Ops& ops = backend.ops;
    Stream& stream = *backend.stream;
    const std::int64_t pair_rows = all.tokens.size(0);
    scratch = empty;
    const View low = scratch.take(x.dtype, {pair_rows, a[0]->rows()});
    const View delta = scratch.take(x.dtype, {pair_rows, y.size(1)});
    const View starts =
        all.starts.rows(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count) + 1);
    ops.grouped_matmul(
        stream, {.x = x, .rows = all.tokens, .starts = starts, .w = std::span(a).first(count), .y = low});
    multiply_b(backend, std::span(changes).first(count), low, starts, delta);
    ops.add_rows(stream, {.x = delta, .rows = all.tokens, .y = y, .range = starts});
  }
}

void add_expert_changes(const Step& step, const View& x, const ExpertPairs& all_pairs, const View& y) {
  // If no adapter changes experts, the adapters have no entries for products of experts, so nothing is added.
  if (step.batch.adapters == nullptr || step.batch.adapters->adapters[0]->size() <= all_pairs.index) return;
  Backend& backend = step.backend;
  const StepAdapters& all = *step.batch.adapters;
  const std::int64_t experts = all_pairs.starts.size(0) - 1;
  const auto change = [&](std::size_t adapter, std::int64_t expert) -> const AdapterChange& {
    return (*all.adapters[adapter])[all_pairs.index + static_cast<std::size_t>(expert)];
  };
  Scratch scratch = step.adapter_scratch;
  const Lists lists = take_lists(scratch, step.tokens(), all_pairs.tokens.size(0));
  auto* adapters = lists.adapters.as<std::int32_t>();
  const auto* const host_starts = all.starts.as<std::int32_t>();
  std::fill_n(adapters, step.tokens(), -1);
  for (std::size_t i = 0; i < all.adapters.size(); ++i)
    for (std::int32_t p = host_starts[i]; p < host_starts[i + 1]; ++p)
      adapters[all.tokens.as<std::int32_t>()[p]] = static_cast<std::int32_t>(i);

  std::array<const Weight*, kAtOnce> a{};
  std::array<const AdapterChange*, kAtOnce> changes{};
  std::size_t groups = 0;
  std::int32_t filled = 0;
  auto *pair_rows = lists.pair_rows.as<std::int32_t>(), *rows = lists.rows.as<std::int32_t>(),
       *starts = lists.starts.as<std::int32_t>();
  starts[0] = 0;
  const auto multiply = [&] {
    if (groups == 0) return;
    Scratch own = scratch;
    const View low = own.take(x.dtype, {filled, a[0]->rows()}),
               delta = own.take(x.dtype, {filled, y.size(1)});
    const View group_starts = lists.starts.rows(0, static_cast<std::int64_t>(groups) + 1);
    const Ops& ops = backend.ops;
    Stream& stream = *backend.stream;
    ops.grouped_matmul(stream, {.x = x,
                                .rows = lists.rows.rows(0, filled),
                                .starts = group_starts,
                                .w = std::span(a).first(groups),
                                .y = low});
    multiply_b(backend, std::span(changes).first(groups), low, group_starts, delta);
    ops.add_rows(stream, {.x = delta, .rows = lists.pair_rows.rows(0, filled), .y = y});
    groups = 0;
    filled = 0;
  };
  for (std::int64_t e = 0; e < experts; ++e) {
    const std::int32_t begin = all_pairs.starts.as<std::int32_t>()[e],
                       end = all_pairs.starts.as<std::int32_t>()[e + 1];
    for (std::size_t i = 0; begin < end && i < all.adapters.size(); ++i) {
      if (!change(i, e).a) continue;
      const std::int32_t before = filled;
      for (std::int32_t pair = begin; pair < end; ++pair) {
        if (adapters[all_pairs.tokens.as<std::int32_t>()[pair]] != static_cast<std::int32_t>(i)) continue;
        pair_rows[filled] = pair;
        rows[filled++] = all_pairs.rows ? all_pairs.rows.as<std::int32_t>()[pair] : pair;
      }
      if (filled == before) continue;
      a[groups] = change(i, e).a.get();
      changes[groups] = &change(i, e);
      starts[++groups] = filled;
      if (groups == kAtOnce) multiply();
    }
  }
  multiply();
}

// Looks up the column of every adapter's A for every token. This is cheap, because columns are short.
void add_embedding_changes(Backend& backend, const StepAdapters& all, const Scratch& scratch, const View& ids,
                           const View& y) {
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
  const std::int64_t n = ids.size(0), pair_rows = all.tokens.size(0);
  for (std::size_t i = 0; i < all.adapters.size(); ++i) {
    const AdapterChange& change = (*all.adapters[i])[kEmbeddingIndex];
    if (!change.a) continue;
    const Weight* b = change.blocks[0].b.get();
    Scratch own = scratch;
    const View found = own.take(DType::f32, {n, b->cols()});
    const View low = own.take(b->activation(), {n, b->cols()});
    const View delta = own.take(b->activation(), {pair_rows, b->rows()});
    ops.embed(stream, {.ids = ids, .table = *change.a, .out = found});
    ops.add_norm(stream, {.residual = found, .out = low});
    const View range = all.starts.rows(static_cast<std::int64_t>(i), 2);
    ops.grouped_matmul(stream, {.x = low, .rows = all.tokens, .starts = range, .w = {&b, 1}, .y = delta});
    ops.add_rows(stream, {.x = delta, .rows = all.tokens, .y = y, .range = range});
  }
}

}  // namespace octavo
