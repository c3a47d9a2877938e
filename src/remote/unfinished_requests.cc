#include "remote/unfinished_requests.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace octavo::remote {

const Submit& UnfinishedRequests::add(RequestId id, Request request, std::shared_ptr<OutputSink> sink,
                                      std::int64_t arrived_us) {
  const int answers = request.answers();
  if (request.answers_so_far.empty())
    for (int i = 0; i < request.sampling.n; ++i) request.answers_so_far.push_back({i, {}});
  Unfinished unfinished{.message = {id, std::move(request)},
                        .sink = std::move(sink),
                        .answers = answers,
                        .times = {.arrived_us = arrived_us}};
  return requests_.emplace(id, std::move(unfinished)).first->second.message;
}

void UnfinishedRequests::append_all(std::string& out) const {
  for (const auto& [id, unfinished] : requests_) append_frame(out, unfinished.message);
}

bool UnfinishedRequests::take(Output&& output, std::int64_t now_us) {
  const auto found = requests_.find(output.id);
  if (found == requests_.end()) return false;
  Unfinished& mine = found->second;
  std::vector<AnswerSoFar>& answers = mine.message.request.answers_so_far;
  const auto answer = std::ranges::find(answers, output.index, &AnswerSoFar::index);
  if (answer == answers.end()) return false;
  const bool has_tokens = !output.token_ids.empty();
  if (has_tokens) {
    mine.deaths = 0;
    if (mine.times.first_token_us == 0) mine.times.first_token_us = now_us;
  }
  // The times must be those of the whole request, not those that the last process measured: several processes
  // may have worked on it.
  output.times.arrived_us = mine.times.arrived_us;
  if (output.times.first_token_us > mine.times.first_token_us && mine.times.first_token_us != 0)
    output.times.first_token_us = mine.times.first_token_us;
  output.times.scheduled_us = std::min(output.times.scheduled_us, output.times.first_token_us);
  if (!output.finished) {
    answer->tokens.insert(answer->tokens.end(), output.token_ids.begin(), output.token_ids.end());
    if (has_tokens) answer->cost = output.cost;
    mine.sink->deliver(std::move(output));
    return has_tokens;
  }
  const Request& request = mine.message.request;
  if (turned_ && request.session && answers.size() == 1 && output.finished != FinishReason::error) {
    std::vector<TokenId> text = request.prompt;
    text.insert(text.end(), answer->tokens.begin(), answer->tokens.end());
    text.insert(text.end(), output.token_ids.begin(), output.token_ids.end());
    turned_(request, std::move(text), mine.times.arrived_us);
  }
  answers.erase(answer);
  mine.sink->deliver(std::move(output));
  if (!answers.empty()) return has_tokens;
  const int ended = mine.answers;
  requests_.erase(found);
  freed_(ended);
  return has_tokens;
}

bool UnfinishedRequests::mark_aborted(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return false;
  return found->second.aborted = true;
}

void UnfinishedRequests::end_aborted() {
  for (auto request = requests_.begin(); request != requests_.end();) {
    const auto next = std::next(request);
    if (request->second.aborted) end(request, FinishReason::abort, {});
    request = next;
  }
}

void UnfinishedRequests::engine_died(const Error& death, bool young) {
  const Error missing{
      ErrorCode::internal,
      "engines crashed in a row while they ran this request; the last error: " + death.message,
      {}};
  end_aborted();
  for (auto request = requests_.begin(); request != requests_.end();) {
    const auto next = std::next(request);
    if ((request->second.deaths += young ? kYoungDeath : 1) >= kDeathsMax)
      end(request, FinishReason::error, missing);
    request = next;
  }
}

void UnfinishedRequests::abort(RequestId id) {
  if (const auto found = requests_.find(id); found != requests_.end()) end(found, FinishReason::abort, {});
}

void UnfinishedRequests::end_all(const Error& error) {
  while (!requests_.empty()) end(requests_.begin(), FinishReason::error, error);
}

void UnfinishedRequests::end(Requests::iterator request, FinishReason reason,
                             const std::optional<Error>& error) {
  const Unfinished mine = std::move(request->second);
  for (const AnswerSoFar& answer : mine.message.request.answers_so_far) {
    Output output;
    output.id = mine.message.id;
    output.engine = engine_;
    output.index = answer.index;
    output.finished = reason;
    output.error = error;
    output.cost = answer.cost;
    output.times = mine.times;
    output.times.last_token_us = now_us();
    mine.sink->deliver(std::move(output));
  }
  requests_.erase(request);
  freed_(mine.answers);
}

bool UnfinishedRequests::use_adapter(std::string_view name) const {
  return std::ranges::any_of(
      requests_, [&](const auto& each) { return each.second.message.request.identity.adapter == name; });
}

}  // namespace octavo::remote
