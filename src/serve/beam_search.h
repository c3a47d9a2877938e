// Beam search by vLLM's rules, as a loop over the engine. In each step every beam is the prompt of a request
// for one token. The engine returns the log-probabilities of the next token. Beams with a common beginning
// share it through the prefix cache.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "serve/service.h"
#include "serve/submission.h"

namespace octavo {

struct BeamRules {
  int width = 1;              // number of beams and of answers
  double length_penalty = 1;  // score: sum of log-probabilities / (number of tokens, including the prompt's)
                              // ^ length_penalty
  int max_tokens = 1;         // maximum number of output tokens of an answer
  int prompt_tokens = 1;
  std::optional<int> logprobs{};  // number of log-probabilities in the reply for each position; -1: all
  std::vector<TokenId> ends{};    // tokens that end an answer
  bool keep_end = false;          // whether an answer includes its end token
};

// The unfinished and finished beams of one prompt; independent of the engine. Sums of log-probabilities are
// double. Among equal scores the beam found first is better.
class Beams {
 public:
  explicit Beams(BeamRules rules) : rules_(std::move(rules)), live_{{}} {}

  std::size_t count() const { return live_.size(); }
  // Tokens of a beam after the prompt. Beams are sorted by their sums, best first.
  std::vector<TokenId> tokens(std::size_t beam) const { return path(live_[beam].last); }

  // Adds a token to the beams. rows[i].top: the most likely tokens after beam i, of which the first 2 * width
  // are used.
  void extend(std::span<const TokenLogprobs> rows);
  // Whether no unfinished beam can still enter the best `width`.
  bool done() const;

  struct Answer {
    std::vector<TokenId> tokens;
    std::vector<TokenLogprobs> logprobs;  // log-probabilities of the tokens, if requested
    double sum = 0;
    std::optional<TokenId> end;  // the end token; nullopt: the answer has max_tokens
  };
  std::vector<Answer> best() const;

 private:
  // A token of a beam. Beams with a common beginning share nodes.
  struct Node {
    int before = -1;  // index of the previous node; -1: the prompt
    TokenId token = 0;
    TokenLogprobs said{};
  };
  struct Beam {
    int last = -1;  // index of the last node
    int length = 0;
    double sum = 0;
    std::optional<TokenId> end{};
    TokenLogprobs end_said{};
  };
  struct Candidate {
    std::size_t beam = 0, place = 0;  // index of the beam, index of the token in its row
    double sum = 0;
  };

  double score(double sum, int length) const;
  void complete(Beam beam);
  std::vector<TokenId> path(int node) const;
  TokenLogprobs said(const TokenLogprobs& row, std::size_t place) const;

  BeamRules rules_;
  std::vector<Beam> live_;
  std::vector<Beam> completed_;  // the best `width` answers, best first
  std::vector<Node> nodes_;
  int steps_ = 0;
};

// Runs the search for one prompt. The sink gets all answers at the end.
class BeamSearch final : public OutputReceiver, public std::enable_shared_from_this<BeamSearch> {
 public:
  // request: from make_request(); sampling.n is the width. Errors: as for EngineClient::submit.
  static Result<std::shared_ptr<BeamSearch>> start(std::shared_ptr<Service> service, Request request,
                                                   double length_penalty, std::shared_ptr<OutputSink> sink);
  // Ends the search with FinishReason::abort.
  void cancel() noexcept;

 private:
  BeamSearch(std::shared_ptr<Service> service, Request request, double length_penalty,
             std::shared_ptr<OutputSink> sink);
  Result<> ask();
  Result<> give_up(std::size_t missing, Error error);
  void deliver(std::size_t beam, Output&& output) noexcept override;
  void step();
  void answer();
  void fail(FinishReason reason, std::optional<Error> error = std::nullopt);

  const std::shared_ptr<Service> service_;
  Request request_;  // template of a step's requests, without the beam's tokens
  const std::shared_ptr<OutputSink> sink_;
  const int width_;
  Beams beams_;

  std::mutex mutex_;         // guards all members below; only step() uses them while no request is running
  std::size_t awaited_ = 0;  // number of running requests of this step
  std::vector<TokenLogprobs> rows_;
  Output head_;                     // fields common to all answers: engine, cached tokens, times
  std::optional<Output> broken_{};  // output of the first request that failed
  // Always accessed with the mutex.
  std::vector<RequestId> ids_;
  bool cancelled_ = false;
};

}  // namespace octavo
