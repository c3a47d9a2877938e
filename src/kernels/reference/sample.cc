// The reference of the sample operator: sorts the vocabulary and processes it in order.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/reference/reference.h"
#include "kernels/sampling.h"

namespace octavo::reference {
namespace {

using sampling::Candidate;
using sampling::Row;
using sampling::RowOutput;
using sampling::Softmax;
using Logits = std::span<const float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool broken(Logits logits) {
  return std::ranges::any_of(logits, [](float x) { return std::isnan(x) || x == kInfinity; });
}

std::vector<Candidate> ordered(Logits logits, const Softmax& softmax) {
  std::vector<Candidate> tokens;
  for (std::size_t id = 0; id < logits.size(); ++id)
    tokens.push_back({logits[id], static_cast<std::int32_t>(id), softmax.mass(logits[id])});
  std::ranges::sort(tokens, sampling::before);
  return tokens;
}

Softmax softmax_of(Logits logits, float inverse_temperature) {
  Softmax softmax{std::ranges::max(logits), inverse_temperature};
  for (const float x : logits) softmax.total += softmax.mass(x);
  return softmax;
}

void change(std::span<float> logits, const Row& row) {
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (!row.allows(static_cast<std::int64_t>(id))) logits[id] = -kInfinity;
  for (std::size_t i = 0; i < row.bias.size(); ++i)
    logits[static_cast<std::size_t>(row.bias[i])] += row.bias_values[i];
  for (std::size_t i = 0; i < row.history.size(); ++i) {
    float& logit = logits[static_cast<std::size_t>(row.history[i])];
    logit = row.penalised(logit, row.history_counts[i]);
  }
}

std::size_t count_kept(std::span<const Candidate> tokens, const Softmax& softmax, const Row& row) {
  std::size_t kept = 0;
  const float least = row.least_exponent();
  while (kept < tokens.size() && softmax.exponent(tokens[kept].logit) >= least) ++kept;
  if (row.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(row.top_k));
  if (row.top_p >= 1) return kept;

  std::uint64_t total = 0, sum = 0;
  for (std::size_t i = 0; i < kept; ++i) total += tokens[i].mass;
  const std::uint64_t target = sampling::mass_to_keep(row.top_p, total);
  for (std::size_t i = 0; i < kept; ++i)
    if ((sum += tokens[i].mass) >= target) return i + 1;
  return kept;
}

std::int32_t draw(std::vector<Candidate> kept, std::int64_t random) {
  std::ranges::sort(kept, {}, &Candidate::id);
  std::uint64_t total = 0, sum = 0;
  for (const Candidate& c : kept) total += c.mass;
  const std::uint64_t point = sampling::drawn_point(random, total);
  for (const Candidate& c : kept)
    if ((sum += c.mass) > point) return c.id;
  return -1;
}

// Writes the logprobs of `id`, and of the tokens in row.reported or, if it is empty, of the first
// row.top_count tokens in sampling order. Tokens after the first `kept` tokens get kLogprobFloor.
void report(Logits logits, Softmax softmax, std::size_t kept, std::int32_t id, const Row& row,
            const RowOutput& out) {
  const std::vector<Candidate> tokens = ordered(logits, softmax);
  std::vector<float> logprobs(logits.size(), kLogprobFloor);
  softmax.total = 0;
  for (std::size_t i = 0; i < kept; ++i) softmax.total += tokens[i].mass;
  for (std::size_t i = 0; i < kept; ++i)
    logprobs[static_cast<std::size_t>(tokens[i].id)] = softmax.logprob(tokens[i].logit);

  std::vector<std::int32_t> list(row.reported.begin(), row.reported.end());
  if (list.empty())
    for (int i = 0; i < row.top_count; ++i) list.push_back(tokens[static_cast<std::size_t>(i)].id);
  for (std::size_t i = 0; i < list.size(); ++i) {
    out.top_ids[i] = list[i];
    out.top_logprobs[i] = logprobs[static_cast<std::size_t>(list[i])];
  }
  const float chosen = logits[static_cast<std::size_t>(id)];
  *out.logprob = logprobs[static_cast<std::size_t>(id)];
  *out.rank =
      1 + static_cast<std::int32_t>(std::ranges::count_if(logits, [&](float x) { return x > chosen; }));
}

void sample_row(std::span<float> logits, const Row& row, const RowOutput& out, bool processed) {
  const std::vector<float> raw(logits.begin(), logits.end());
  if (broken(raw) || std::ranges::max(raw) == -kInfinity) return out.reject(row);
  if (row.forced >= 0) {
    *out.id = row.forced;
    if (row.reports()) report(raw, softmax_of(raw, 1), raw.size(), row.forced, row, out);
    return;
  }
  change(logits, row);
  if (broken(logits) || std::ranges::max(logits) == -kInfinity) return out.reject(row);

  const Softmax softmax = softmax_of(logits, row.greedy() ? 1 : 1 / row.temperature);
  std::vector<Candidate> tokens = ordered(logits, softmax);
  const std::size_t kept = row.greedy() ? tokens.size() : count_kept(tokens, softmax, row);
  *out.id = row.greedy() ? tokens[0].id
                         : draw({tokens.begin(), tokens.begin() + static_cast<int>(kept)}, row.random);
  if (!row.reports()) return;
  if (processed) return report(logits, softmax, kept, *out.id, row, out);
  report(raw, softmax_of(raw, 1), raw.size(), *out.id, row, out);
}

}  // namespace

void sample(Stream&, const SampleArgs& args) {
  const auto vocab = static_cast<std::size_t>(args.logits.size(1));
  for (std::int64_t r = 0; r < args.logits.size(0); ++r)
    sample_row({args.logits.row<float>(r), vocab}, Row(args, r), RowOutput(args, r), args.processed);
}

}  // namespace octavo::reference
