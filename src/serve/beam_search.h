// Beam search with vLLM's rules. In each step, the search submits every beam as a request for one token, and
// the engine returns the log-probabilities of the next token. The prefix cache saves recomputing the beams.
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
  int width = 1;  // number of beams, which is also the number of answers
  // score of an answer: sum of its log-probabilities / (number of prompt and output tokens) ^
  // length_penalty
  double length_penalty = 1;
  int max_tokens = 1;  // maximum number of output tokens of each answer
  int prompt_tokens = 1;
  // number of log-probabilities that the reply has for each position; -1: the whole vocabulary; nullopt: none
  std::optional<int> logprobs{};
  std::vector<TokenId> ends{};  // end-of-text and stop tokens
  bool keep_end = false;
};

// The beams of one prompt, without the calls to the engine. Sums of log-probabilities are doubles. If two
// scores are equal, the beam that was found first wins.
class Beams {
 public:
  explicit Beams(BeamRules rules) : rules_(std::move(rules)), live_{{}} {}

  std::size_t count() const { return live_.size(); }
  // Returns the beam's tokens after the prompt. Beam 0 has the largest sum.
  std::vector<TokenId> tokens(std::size_t beam) const { return path(live_[beam].last); }

  // Continues the beams by one token. `rows[i].top` contains the most likely next tokens of beam i; only the
  // first 2 * width are used.
  void extend(std::span<const TokenLogprobs> rows);
  // Returns true if the search is over: no unfinished beam can become one of the `width` best answers.
  bool done() const;

  struct Answer {
    std::vector<TokenId> tokens;
    std::vector<TokenLogprobs> logprobs;  // log-probabilities of the answer's tokens, if requested
    double sum = 0;
    std::optional<TokenId> end;  // nullopt: the answer ended at max_tokens
  };
  std::vector<Answer> best() const;

 private:
  // A token of a beam. Beams with a common prefix share its nodes.
  struct Node {
    int before = -1;  // index of the previous token's node; -1: the first output token
    TokenId token = 0;
    TokenLogprobs token_logprobs{};
  };
  struct Beam {
    int last = -1;
    int length = 0;
    double sum = 0;
    std::optional<TokenId> end{};
    TokenLogprobs end_logprobs{};
  };
  struct Candidate {
    std::size_t beam = 0, rank = 0;  // index of the beam, and index of the token in its row
    double sum = 0;
  };

  double score(double sum, int length) const;
  void complete(Beam beam);
  std::vector<TokenId> path(int node) const;
  TokenLogprobs token_logprobs(const TokenLogprobs& row, std::size_t rank) const;

  BeamRules rules_;
  std::vector<Beam> live_;
  std::vector<Beam> completed_;  // the best `width` answers, best first
  std::vector<Node> nodes_;
  int steps_ = 0;
};

// Runs the search for one prompt. The sink receives all answers at the end of the search.
class BeamSearch final : public OutputReceiver, public std::enable_shared_from_this<BeamSearch> {
 public:
  // request: result of make_request(); its sampling.n is the number of beams. Returns the errors of
  // EngineClient::submit.
  static Result<std::shared_ptr<BeamSearch>> start(std::shared_ptr<Service> service, Request request,
                                                   double length_penalty, std::shared_ptr<OutputSink> sink);
  // Ends the search with FinishReason::abort.
  void cancel() noexcept;

 private:
  BeamSearch(std::shared_ptr<Service> service, Request request, double length_penalty,
             std::shared_ptr<OutputSink> sink);
  Result<> submit_step();
  Result<> give_up(std::size_t missing, Error error);
  void deliver(std::size_t beam, Output&& output) noexcept override;
  void step();
  void answer();
  void fail(FinishReason reason, std::optional<Error> error = std::nullopt);

  const std::shared_ptr<Service> service_;
  Request request_;  // template of each step's requests, without the beam's tokens
  const std::shared_ptr<OutputSink> sink_;
  const int width_;
  Beams beams_;

  std::mutex mutex_;  // guards all members below; while no request is running, only step() uses them, without
                      // the lock
  std::size_t awaited_ = 0;  // number of running requests in this step
  std::vector<TokenLogprobs> rows_;
  Output head_;                     // fields that all answers share: engine, cached tokens, times
  std::optional<Output> broken_{};  // output of the first request that failed in this step
  // ids_ and cancelled_ are always accessed with mutex_ locked.
  std::vector<RequestId> ids_;
  bool cancelled_ = false;
};

}  // namespace octavo
