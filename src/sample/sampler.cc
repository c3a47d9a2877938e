#include "sample/sampler.h"

#include <algorithm>
#include <limits>
#include <new>

#include "base/random.h"

namespace octavo {
namespace {

constexpr float kBan = -std::numeric_limits<float>::infinity();

// Logprobs that the request wants for one row. top_count is -1 if it wants no logprobs.
struct Report {
  int top_count = -1;
  // logprobs.token_ids of the request, reported instead of the most likely tokens
  std::span<const TokenId> ids;

  std::size_t columns() const {
    return ids.empty() ? static_cast<std::size_t>(std::max(top_count, 0)) : ids.size();
  }
};

// Allocates the list of logprobs. Returns false if there is not enough memory.
bool make_list(SampledToken& result, std::size_t entries) {
  try {
    result.logprobs.emplace().top.resize(entries);
    return true;
  } catch (const std::bad_alloc&) {
    result.logprobs.reset();
    return false;
  }
}

Report report_of(const SampleRow& row, std::size_t vocab) {
  const SamplingParams& params = row.sequence->params();
  if (!row.listed.empty()) return {0, row.listed};
  const bool forced = row.forced >= 0;
  if (!forced && !params.logprobs.token_ids.empty()) return {0, params.logprobs.token_ids};
  const std::optional<int> requested = forced ? params.logprobs.prompt : params.logprobs.output;
  if (!requested) return {};
  const int most = static_cast<int>(vocab);
  return {*requested == -1 ? most : std::min(*requested, most), {}};
}

std::size_t history_max(const SampleRow& row) {
  if (row.forced >= 0 || !row.sequence->penalises()) return 0;
  return row.sequence->history().ids().size() + row.drafts.size();
}
bool masked(const SampleRow& row) {
  return row.forced < 0 && !(row.sequence->allowed().empty() && row.mask.empty());
}

std::size_t biases_max(const SampleRow& row) {
  return row.forced < 0 ? row.sequence->bias().size() + row.sequence->bans_max() : 0;
}

// Copies the history to `ids` and `counts`, then adds the draft tokens as output. Returns the number of
// entries.
std::size_t add_drafts(const TokenHistory& history, std::span<const TokenId> drafts, int vocab_size,
                       std::span<std::int32_t> ids, std::span<std::int32_t> counts) {
  const std::size_t known = history.ids().size();
  std::size_t count = known;
  for (const TokenId id : drafts) {
    if (id < 0 || id >= vocab_size) continue;  // Such an id is never sampled, so it needs no penalty.
    std::size_t at = history.find(id).value_or(count);
    if (at == count)
      at = static_cast<std::size_t>(std::ranges::find(ids.first(count).subspan(known), id) - ids.begin());
    if (at == count) {
      ids[count] = id;
      counts[count++] = 0;
    }
    ++counts[at];
  }
  return count;
}

// Merges two lists that are sorted by id. If an id is banned and has a bias, the ban wins. Returns the
// number of entries.
std::size_t merge(std::span<const std::pair<TokenId, float>> bias, std::span<const TokenId> bans,
                  std::span<std::int32_t> ids, std::span<float> values) {
  std::size_t count = 0;
  auto next = bias.begin();
  const auto put = [&](TokenId id, float value) {
    ids[count] = id;
    values[count++] = value;
  };
  for (const TokenId ban : bans) {
    for (; next != bias.end() && next->first < ban; ++next) put(next->first, next->second);
    if (next != bias.end() && next->first == ban) ++next;
    put(ban, kBan);
  }
  for (; next != bias.end(); ++next) put(next->first, next->second);
  return count;
}

}  // namespace

Result<> Sampler::launch(const View& logits, std::span<const SampleRow> rows) {
  CHECK(logits.size(0) == static_cast<std::int64_t>(rows.size()), "{} rows of logits for {}", logits.size(0),
        rows.size());
  results_.clear();
  results_.resize(rows.size());
  if (rows.empty()) return {};
  const auto vocab = static_cast<std::size_t>(logits.size(1));
  lay_out(rows, vocab);
  TRY_VOID(in_.fit(*backend_.device, *backend_.stream));
  TRY_VOID(out_.fit(*backend_.device, *backend_.stream));
  pack(rows, vocab);
  in_.upload(*backend_.device, *backend_.stream);
  backend_.ops.sample(*backend_.stream, arguments(logits));
  out_.download(*backend_.device, *backend_.stream);
  launched_ = backend_.stream->mark();
  return {};
}

void Sampler::lay_out(std::span<const SampleRow> rows, std::size_t vocab) {
  std::size_t history = 0, biases = 0, masks = 0, reported = 0, columns = 0;
  for (const SampleRow& row : rows) {
    CHECK(row.sequence->vocab_size() == static_cast<int>(vocab) && row.forced < row.sequence->vocab_size(),
          "a row of {} logits for a vocabulary of {}, forced token {}", vocab, row.sequence->vocab_size(),
          row.forced);
    history += history_max(row);
    biases += biases_max(row);
    masks += masked(row) ? 1 : 0;
    const Report report = report_of(row, vocab);
    reported += report.ids.size();
    columns = std::max(columns, report.columns());
  }
  const std::size_t n = rows.size();
  const std::size_t words = (vocab + 31) / 32;
  // The starts of a feature that no row uses are an empty array.
  const auto starts_if = [n](std::size_t needed) { return needed > 0 ? n + 1 : 0; };

  in_.clear();
  inputs_ = {.rules = in_.add<DrawRule>(n),
             .history_starts = in_.add<std::int32_t>(starts_if(history)),
             .history_ids = in_.add<std::int32_t>(history),
             .history_counts = in_.add<std::int32_t>(history),
             .bias_starts = in_.add<std::int32_t>(starts_if(biases)),
             .bias_ids = in_.add<std::int32_t>(biases),
             .bias_values = in_.add<float>(biases),
             .masks = in_.add<std::int32_t>(masks * words),
             .reported_starts = in_.add<std::int32_t>(starts_if(reported)),
             .reported_ids = in_.add<std::int32_t>(reported)};
  out_.clear();
  outputs_ = {.id = out_.add<std::int32_t>(n),
              .rank = out_.add<std::int32_t>(n),
              .top_ids = out_.add<std::int32_t>(n * columns),
              .logprob = out_.add<float>(n),
              .top_logprobs = out_.add<float>(n * columns),
              .columns = columns};
}

void Sampler::pack(std::span<const SampleRow> rows, std::size_t vocab) {
  const auto rules = in_.host(inputs_.rules);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const SequenceSampling& sequence = *rows[r].sequence;
    const SamplingParams& params = sequence.params();
    const std::size_t position = rows[r].output.size() + rows[r].drafts.size();
    rules[r] = {
        .random = params.greedy() ? 0 : static_cast<std::int64_t>(random_bits(sequence.seed(), position)),
        .temperature = params.greedy() ? 0 : static_cast<float>(params.temperature),
        .top_p = static_cast<float>(params.top_p),
        .min_p = static_cast<float>(params.min_p),
        .top_k = std::max(params.top_k, 0),
        .repetition_penalty = static_cast<float>(params.penalties.repetition),
        .frequency_penalty = static_cast<float>(params.penalties.frequency),
        .presence_penalty = static_cast<float>(params.penalties.presence),
        .forced = rows[r].forced};
  }
  if (inputs_.history_starts.count > 0) pack_history(rows);
  if (inputs_.bias_starts.count > 0) pack_bias(rows);
  if (inputs_.masks.count > 0) pack_masks(rows, (vocab + 31) / 32);
  pack_reports(rows, vocab);
}

void Sampler::pack_history(std::span<const SampleRow> rows) {
  const auto starts = in_.host(inputs_.history_starts);
  const auto ids = in_.host(inputs_.history_ids), counts = in_.host(inputs_.history_counts);
  std::size_t at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    starts[r] = static_cast<std::int32_t>(at);
    if (history_max(rows[r]) == 0) continue;
    const TokenHistory& history = rows[r].sequence->history();
    std::ranges::copy(history.ids(), ids.begin() + static_cast<std::ptrdiff_t>(at));
    std::ranges::copy(history.counts(), counts.begin() + static_cast<std::ptrdiff_t>(at));
    at += add_drafts(history, rows[r].drafts, rows[r].sequence->vocab_size(), ids.subspan(at),
                     counts.subspan(at));
  }
  starts.back() = static_cast<std::int32_t>(at);
}

void Sampler::pack_bias(std::span<const SampleRow> rows) {
  const auto starts = in_.host(inputs_.bias_starts), ids = in_.host(inputs_.bias_ids);
  const auto values = in_.host(inputs_.bias_values);
  std::size_t at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    starts[r] = static_cast<std::int32_t>(at);
    if (biases_max(rows[r]) == 0) continue;
    rows[r].sequence->find_bans(rows[r].output, rows[r].drafts, bans_);
    at += merge(rows[r].sequence->bias(), bans_, ids.subspan(at), values.subspan(at));
  }
  starts.back() = static_cast<std::int32_t>(at);
}

void Sampler::pack_masks(std::span<const SampleRow> rows, std::size_t words) {
  const auto rules = in_.host(inputs_.rules);
  const auto masks = in_.host(inputs_.masks);
  std::size_t next = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!masked(rows[r])) continue;
    rules[r].mask_row = static_cast<std::int32_t>(next);
    const auto mask = masks.subspan(next++ * words, words);
    const auto allowed = rows[r].sequence->allowed();
    const auto grammar = rows[r].mask;
    CHECK(allowed.empty() || allowed.size() == words, "{} words, the vocabulary has {}", allowed.size(),
          words);
    CHECK(grammar.empty() || grammar.size() == words, "{} words, the vocabulary has {}", grammar.size(),
          words);
    for (std::size_t w = 0; w < words; ++w)
      mask[w] = (allowed.empty() ? -1 : static_cast<std::int32_t>(allowed[w])) &
                (grammar.empty() ? -1 : grammar[w]);
  }
}

void Sampler::pack_reports(std::span<const SampleRow> rows, std::size_t vocab) {
  const auto rules = in_.host(inputs_.rules);
  const auto starts = in_.host(inputs_.reported_starts), ids = in_.host(inputs_.reported_ids);
  std::size_t at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Report report = report_of(rows[r], vocab);
    const bool reports = report.top_count >= 0 && make_list(results_[r], report.columns());
    if (reports) rules[r].top_count = report.top_count;
    if (starts.empty()) continue;
    starts[r] = static_cast<std::int32_t>(at);
    for (std::size_t i = 0; i < report.ids.size(); ++i) {
      ids[at++] = std::max(report.ids[i], TokenId{0});
      if (reports && report.ids[i] < 0) results_[r].logprobs->top[i].first = report.ids[i];
    }
  }
  if (!starts.empty()) starts.back() = static_cast<std::int32_t>(at);
}

SampleArgs Sampler::arguments(const View& logits) const {
  const auto in = [&](const auto& part) { return part.count > 0 ? in_.device(part) : View{}; };
  const auto lists = [&](const auto& starts, const auto& ids) {
    return starts.count > 0 ? RowLists{in_.device(starts), in_.device(ids)} : RowLists{};
  };
  const std::int64_t rows = logits.size(0), words = (logits.size(1) + 31) / 32;
  const auto columns = static_cast<std::int64_t>(outputs_.columns);
  const auto masks = static_cast<std::int64_t>(inputs_.masks.count) / words;
  return {.logits = logits,
          .rules = in(inputs_.rules),
          .history = lists(inputs_.history_starts, inputs_.history_ids),
          .history_counts = in(inputs_.history_counts),
          .bias = lists(inputs_.bias_starts, inputs_.bias_ids),
          .bias_values = in(inputs_.bias_values),
          .mask = masks > 0 ? View::of(in_.device(inputs_.masks).data, DType::i32, {masks, words}) : View{},
          .reported = lists(inputs_.reported_starts, inputs_.reported_ids),
          .processed = options_.processed_logprobs,
          .out_id = out_.device(outputs_.id),
          .out_logprob = out_.device(outputs_.logprob),
          .out_rank = out_.device(outputs_.rank),
          .out_top_ids = View::of(out_.device(outputs_.top_ids).data, DType::i32, {rows, columns}),
          .out_top_logprobs = View::of(out_.device(outputs_.top_logprobs).data, DType::f32, {rows, columns})};
}

std::span<SampledToken> Sampler::collect() {
  backend_.stream->wait(launched_);
  for (std::size_t r = 0; r < results_.size(); ++r) {
    SampledToken& result = results_[r];
    result.id = out_.host(outputs_.id)[r];
    if (!result.logprobs) continue;
    const auto ids = out_.host(outputs_.top_ids).subspan(r * outputs_.columns);
    const auto values = out_.host(outputs_.top_logprobs).subspan(r * outputs_.columns);
    result.logprobs->id = result.id;
    result.logprobs->logprob = out_.host(outputs_.logprob)[r];
    result.logprobs->rank = out_.host(outputs_.rank)[r];
    for (std::size_t i = 0; i < result.logprobs->top.size(); ++i) {
      auto& [id, value] = result.logprobs->top[i];
      if (id < 0)
        value = kBan;  // padding
      else
        id = ids[i], value = values[i];
    }
  }
  return results_;
}

}  // namespace octavo
