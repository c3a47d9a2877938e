#include "serve/beam_search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/out_of_memory.h"

namespace octavo {
namespace {

BeamRules rules_of(const Request& request, double length_penalty) {
  const SamplingParams& p = request.sampling;
  BeamRules rules{.width = p.n,
                  .length_penalty = length_penalty,
                  .max_tokens = p.max_tokens.value_or(1),
                  .prompt_tokens = static_cast<int>(request.prompt.size()),
                  .logprobs = p.logprobs.output,
                  .keep_end = p.include_stop_str_in_output};
  rules.ends = p.stop_token_ids;
  if (!p.ignore_eos) rules.ends.insert(rules.ends.end(), request.eos_ids.begin(), request.eos_ids.end());
  return rules;
}

// Returns the sampling parameters for one token of a beam. Temperature and penalties are not copied, because
// log-probabilities do not depend on them.
SamplingParams one_token(const SamplingParams& requested) {
  SamplingParams p;
  p.temperature = 0;
  p.max_tokens = 1;
  p.ignore_eos = true;
  const int shown = requested.logprobs.output.value_or(0);
  p.logprobs.output = shown < 0 ? shown : std::max(2 * requested.n, shown);
  return p;
}

}  // namespace

double Beams::score(double sum, int length) const {
  return sum / std::pow(rules_.prompt_tokens + length, rules_.length_penalty);
}

std::vector<TokenId> Beams::path(int node) const {
  std::vector<TokenId> tokens;
  for (; node >= 0; node = nodes_[static_cast<std::size_t>(node)].before)
    tokens.push_back(nodes_[static_cast<std::size_t>(node)].token);
  std::ranges::reverse(tokens);
  return tokens;
}

// Returns the log-probabilities to report for a position whose token is row.top[rank].
TokenLogprobs Beams::token_logprobs(const TokenLogprobs& row, std::size_t rank) const {
  if (!rules_.logprobs) return {};
  TokenLogprobs token_logprobs{.id = row.top[rank].first,
                               .logprob = row.top[rank].second,
                               .rank = static_cast<int>(rank) + 1,
                               .top = {}};
  const auto entries = std::ssize(row.top);
  const std::ptrdiff_t shown =
      *rules_.logprobs < 0 ? entries : std::min<std::ptrdiff_t>(entries, *rules_.logprobs);
  token_logprobs.top.assign(row.top.begin(), row.top.begin() + shown);
  return token_logprobs;
}

void Beams::complete(Beam beam) {
  const auto better = [this](const Beam& a, const Beam& b) {
    return score(a.sum, a.length) > score(b.sum, b.length);
  };
  completed_.insert(std::ranges::upper_bound(completed_, beam, better), std::move(beam));
  if (std::ssize(completed_) > rules_.width) completed_.pop_back();
}

void Beams::extend(std::span<const TokenLogprobs> rows) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const auto& top = rows[i].top;
    const std::size_t tried = std::min(top.size(), 2 * static_cast<std::size_t>(rules_.width));
    for (std::size_t rank = 0; rank < tried; ++rank) {
      const auto [id, logprob] = top[rank];
      const double sum = live_[i].sum + static_cast<double>(logprob);
      if (std::ranges::find(rules_.ends, id) == rules_.ends.end()) {
        candidates.push_back({i, rank, sum});
        continue;
      }
      Beam ended = live_[i];
      ended.sum = sum;
      ended.end = id;
      ended.end_logprobs = token_logprobs(rows[i], rank);
      complete(std::move(ended));
    }
  }
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::sum);
  candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(rules_.width)));
  std::vector<Beam> longer;
  for (const Candidate& candidate : candidates) {
    const Beam& beam = live_[candidate.beam];
    const TokenLogprobs& row = rows[candidate.beam];
    nodes_.push_back({beam.last, row.top[candidate.rank].first, token_logprobs(row, candidate.rank)});
    longer.push_back(
        {.last = static_cast<int>(nodes_.size()) - 1, .length = beam.length + 1, .sum = candidate.sum});
  }
  live_ = std::move(longer);
  ++steps_;
}

bool Beams::done() const {
  if (live_.empty() || steps_ >= rules_.max_tokens) return true;
  if (std::ssize(completed_) < rules_.width) return false;
  // More tokens never increase a sum of log-probabilities. For a given sum, the best score belongs to the
  // shortest or to the longest length, depending on length_penalty.
  const double sum = live_.front().sum;
  const double bound = std::max(score(sum, live_.front().length), score(sum, rules_.max_tokens));
  return bound <= score(completed_.back().sum, completed_.back().length);
}

std::vector<Beams::Answer> Beams::best() const {
  std::vector<Beam> all = completed_;
  std::ranges::copy(live_, std::back_inserter(all));
  std::ranges::stable_sort(all, std::ranges::greater{},
                           [this](const Beam& beam) { return score(beam.sum, beam.length); });
  all.resize(std::min(all.size(), static_cast<std::size_t>(rules_.width)));
  std::vector<Answer> answers;
  for (const Beam& beam : all) {
    Answer& answer = answers.emplace_back(path(beam.last), std::vector<TokenLogprobs>(), beam.sum, beam.end);
    if (rules_.logprobs) {
      for (int node = beam.last; node >= 0; node = nodes_[static_cast<std::size_t>(node)].before)
        answer.logprobs.push_back(nodes_[static_cast<std::size_t>(node)].token_logprobs);
      std::ranges::reverse(answer.logprobs);
    }
    if (!beam.end || !rules_.keep_end) continue;
    answer.tokens.push_back(*beam.end);
    if (rules_.logprobs) answer.logprobs.push_back(beam.end_logprobs);
  }
  return answers;
}

BeamSearch::BeamSearch(std::shared_ptr<Service> service, Request request, double length_penalty,
                       std::shared_ptr<OutputSink> sink)
    : service_(std::move(service)),
      request_(std::move(request)),
      sink_(std::move(sink)),
      width_(request_.sampling.n),
      beams_(rules_of(request_, length_penalty)) {
  request_.sampling = one_token(request_.sampling);
  head_.times.arrived_us = now_us();
}

Result<std::shared_ptr<BeamSearch>> BeamSearch::start(std::shared_ptr<Service> service, Request request,
                                                      double length_penalty,
                                                      std::shared_ptr<OutputSink> sink) {
  const std::shared_ptr<BeamSearch> search(
      new BeamSearch(std::move(service), std::move(request), length_penalty, std::move(sink)));
  TRY_VOID(search->submit_step());
  return search;
}

// Submits the requests of a step. Returns an error only if it could submit none of them. If it could submit
// only some, step() reports the error after these have ended.
Result<> BeamSearch::submit_step() {
  const std::size_t count = beams_.count();
  {
    const std::lock_guard lock(mutex_);
    rows_.assign(count, {});
    ids_.clear();
    awaited_ = count;
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto id = within_memory([&] {
      Request request = request_;
      std::ranges::copy(beams_.tokens(i), std::back_inserter(request.prompt));
      return service_->engine.submit(std::move(request), sink_of(shared_from_this(), i));
    });
    if (!id) return give_up(count - i, std::move(id).error());
    bool cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      ids_.push_back(*id);
      cancelled = cancelled_;
    }
    if (cancelled) service_->engine.abort(*id);
  }
  return {};
}

// Called if submit() returned an error. missing: number of requests of this step that were not submitted.
Result<> BeamSearch::give_up(std::size_t missing, Error error) {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    awaited_ -= missing;
    if (awaited_ == 0) return std::unexpected(std::move(error));
    broken_.emplace().finished = FinishReason::error;
    broken_->error = std::move(error);
    ids = ids_;
  }
  for (const RequestId id : ids) service_->engine.abort(id);
  return {};
}

void BeamSearch::cancel() noexcept {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    ids = ids_;
  }
  for (const RequestId id : ids) service_->engine.abort(id);
}

void BeamSearch::deliver(std::size_t beam, Output&& output) noexcept {
  const std::lock_guard lock(mutex_);
  if (!output.logprobs.empty()) rows_[beam] = std::move(output.logprobs.front());
  const bool first = head_.times.first_token_us == 0;
  if (first) head_.cached_tokens = std::max(head_.cached_tokens, output.cached_tokens);
  if (!output.finished) return;
  head_.cost += output.cost;
  head_.id = output.id;
  head_.engine = output.engine;
  if (first) {
    head_.times.scheduled_us = output.times.scheduled_us;
    head_.times.first_token_us = output.times.first_token_us;
  }
  head_.times.last_token_us = output.times.last_token_us;
  if (output.finished != FinishReason::length && !broken_) broken_ = std::move(output);
  if (--awaited_ == 0) service_->delivery.post([self = shared_from_this()] { self->step(); });
}

// Runs after the last request of a step has ended, on a thread that may block.
void BeamSearch::step() {
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    cancelled = cancelled_;
  }
  if (cancelled) return fail(FinishReason::abort);
  if (broken_) return fail(*broken_->finished, std::move(broken_->error));
  const auto went_on = within_memory([this]() -> Result<> {
    beams_.extend(rows_);
    if (!beams_.done()) {
      // Uses the engine of the last step, because its cache has the prefixes of the beams.
      request_.engine = head_.engine;
      return submit_step();
    }
    answer();
    return {};
  });
  if (!went_on) fail(FinishReason::error, went_on.error());
}

void BeamSearch::answer() {
  std::vector<Beams::Answer> answers = beams_.best();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Output output = head_;
    output.index = static_cast<int>(i);
    output.token_ids = std::move(answers[i].tokens);
    output.logprobs = std::move(answers[i].logprobs);
    output.finished = answers[i].end ? FinishReason::stop : FinishReason::length;
    output.stop_token = answers[i].end;
    if (i > 0) output.cost = {};  // The first answer has the cost of all beams, so the others have none.
    sink_->deliver(std::move(output));
  }
}

void BeamSearch::fail(FinishReason reason, std::optional<Error> error) {
  for (int i = 0; i < width_; ++i) {
    Output output = head_;
    output.index = i;
    output.finished = reason;
    output.error = error;
    if (i > 0) output.cost = {};
    sink_->deliver(std::move(output));
  }
}

}  // namespace octavo
