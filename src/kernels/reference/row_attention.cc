// Attention for caches in which keys are also the values (KvSpec::shared_rows). Queries see the last tokens
// and compressed entries of several tokens.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/host_device.h"
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {
namespace {

double cached(const KvLayer& cache, const ReferencePlan& plan, std::size_t sequence, std::int64_t entry,
              std::int64_t d) {
  const KvSpec& spec = cache.spec;
  const auto index = static_cast<std::int64_t>(sequence) * plan.table_stride + entry / spec.entries();
  const std::int64_t block = plan.block_tables[static_cast<std::size_t>(index)];
  CHECK(block >= 0 && block < cache.blocks, "block {} of {}", block, cache.blocks);
  return load(cache.data + block * cache.stride_bytes, spec.dtype,
              entry % spec.entries() * spec.head_dim + d);
}

// Rotates the end of a row by the angles of this position, or by the negative angles if `back` is true, in
// single precision.
void rotate_end(std::vector<double>& row, const View& frequencies, float scale, std::int32_t position,
                bool back) {
  const std::int64_t pairs = frequencies.size(0), first = std::ssize(row) - 2 * pairs;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<float>(position) * frequencies.as<float>()[i];
    const double c = std::cos(angle) * scale, s = std::sin(angle) * scale * (back ? -1 : 1);
    double& a = row[static_cast<std::size_t>(first + 2 * i)];
    double& b = row[static_cast<std::size_t>(first + 2 * i + 1)];
    const double rotated = a * c - b * s;
    b = b * c + a * s;
    a = rotated;
  }
}

}  // namespace

void rotate_ends(Stream&, const RotateEndsArgs& args) {
  for (std::int64_t t = 0; t < args.x.size(0); ++t)
    for (std::int64_t h = 0; h < args.x.size(1); ++h) {
      std::vector<double> head;
      for (std::int64_t d = 0; d < args.x.size(2); ++d) head.push_back(at(args.x, {t, h, d}));
      normalize(args.norm, head);
      rotate_end(head, args.frequencies, args.scale, args.positions.as<std::int32_t>()[t], args.back);
      for (std::int64_t d = 0; d < args.x.size(2); ++d)
        put(args.x, {t, h, d}, head[static_cast<std::size_t>(d)]);
    }
}

void store_rows(Stream&, const StoreRowsArgs& args) {
  const KvSpec& spec = args.cache.spec;
  check_indices("slot", args.slots, args.cache.blocks * spec.block_size);
  for (std::int64_t t = 0; t < args.x.size(0); ++t) {
    const std::int32_t position = args.positions.as<std::int32_t>()[t];
    if ((position + 1) % spec.rate != 0) continue;
    std::vector<double> row;
    for (std::int64_t d = 0; d < args.x.size(1); ++d) row.push_back(at(args.x, {t, d}));
    normalize(args.norm, row);
    rotate_end(row, args.frequencies, args.scale, position + 1 - spec.rate, false);
    const std::int64_t slot = args.slots.as<std::int64_t>()[t];
    std::byte* block = args.cache.data + slot / spec.block_size * args.cache.stride_bytes;
    const std::int64_t begin = slot % spec.block_size / spec.rate * spec.head_dim + args.first;
    for (std::int64_t d = 0; d < args.x.size(1); ++d)
      store(block, spec.dtype, begin + d, row[static_cast<std::size_t>(d)]);
  }
}

void choose_entries(Stream&, const ChooseTokensArgs& args) {
  const auto& plan = static_cast<const ReferencePlan&>(args.plan);
  const KvSpec& spec = args.cache.spec;
  for (std::size_t s = 0; s < plan.lengths.size(); ++s)
    for (std::int64_t query = plan.query_starts[s]; query < plan.query_starts[s + 1]; ++query) {
      std::vector<std::pair<double, std::int32_t>> entries;
      const std::int64_t count = (plan.lengths[s] - (plan.query_starts[s + 1] - query) + 1) / spec.rate;
      for (std::int32_t e = 0; e < count; ++e) {
        double score = 0;
        for (std::int64_t h = 0; h < args.q.size(1); ++h) {
          double product = 0;
          for (std::int64_t d = 0; d < spec.index_dim; ++d)
            product += at(args.q, {query, h, d}) * cached(args.cache, plan, s, e, spec.score_dim() + d);
          score += at(args.weights, {query, h}) * std::max(product, 0.0);
        }
        entries.emplace_back(-score, e);
      }
      std::ranges::sort(entries);
      entries.resize(std::min(entries.size(), static_cast<std::size_t>(args.chosen.size(1))));
      std::ranges::sort(entries, {}, &std::pair<double, std::int32_t>::second);
      auto* chosen = args.chosen.row<std::int32_t>(query);
      std::fill_n(chosen, args.chosen.size(1), kNoToken);
      for (const auto& [score, entry] : entries) *chosen++ = entry;
    }
}

void attend_rows(Stream&, const AttentionArgs& args) {
  const auto& plan = static_cast<const ReferencePlan&>(args.plan);
  const auto* entry_plan = static_cast<const ReferencePlan*>(args.entry_plan);
  const std::int64_t dim = args.cache.spec.score_dim(), heads = args.q.size(1);
  for (std::size_t s = 0; s < plan.lengths.size(); ++s)
    for (std::int64_t query = plan.query_starts[s]; query < plan.query_starts[s + 1]; ++query) {
      const std::int64_t position = plan.lengths[s] - (plan.query_starts[s + 1] - query);
      std::vector<std::vector<double>> rows;
      const auto add = [&](const KvLayer& cache, const ReferencePlan& of, std::int64_t entry) {
        std::vector<double>& row = rows.emplace_back();
        for (std::int64_t d = 0; d < dim; ++d) row.push_back(cached(cache, of, s, entry, d));
      };
      for (std::int64_t t = args.window > 0 ? std::max<std::int64_t>(0, position - args.window + 1) : 0;
           t <= position; ++t)
        add(args.cache, plan, t);
      for (std::int64_t e = 0; entry_plan != nullptr && e < (position + 1) / args.entries.spec.rate; ++e) {
        const auto* chosen = args.chosen ? args.chosen.row<std::int32_t>(query) : nullptr;
        if (chosen == nullptr || std::binary_search(chosen, chosen + args.chosen.size(1), e))
          add(args.entries, *entry_plan, e);
      }
      for (std::int64_t h = 0; h < heads; ++h) {
        std::vector<double> scores, mixed(static_cast<std::size_t>(dim));
        for (const std::vector<double>& row : rows) {
          double score = 0;
          for (std::int64_t d = 0; d < dim; ++d)
            score += at(args.q, {query, h, d}) * row[static_cast<std::size_t>(d)];
          scores.push_back(score * args.scale);
        }
        const double most = std::ranges::max(scores);
        double sum = args.sinks ? std::exp(at(args.sinks, {h}) - most) : 0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const double share = std::exp(scores[i] - most);
          sum += share;
          for (std::size_t d = 0; d < mixed.size(); ++d) mixed[d] += share * rows[i][d];
        }
        for (std::int64_t d = 0; d < dim; ++d)
          put(args.out, {query, h * dim + d}, mixed[static_cast<std::size_t>(d)] / sum);
      }
    }
}

}  // namespace octavo::reference
