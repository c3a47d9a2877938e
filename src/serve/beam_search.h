// Beam search by vLLM's rules, as a loop over the engine. A step submits one request for one token per beam;
// the prompt is the beam, and the reply has the log-probabilities of the next token. The prefix cache makes
// forks cheap.
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
  int width = 1;              // beams, and answers
  double length_penalty = 1;  // a score is the sum of log-probabilities / (tokens with the prompt's) ^ this
  int max_tokens = 1;         // of an answer
  int prompt_tokens = 1;
  std::optional<int> logprobs{};  // number in the reply for each position; -1: all
  std::vector<TokenId> ends{};    // tokens that end an answer and are not of it
  bool keep_end = false;          // but they are
};

// The unfinished and finished beams of one prompt, without an engine. Sums add float log-probabilities in
// double; among equal scores the first one found wins.
class Beams {
 public:
  explicit Beams(BeamRules rules) : rules_(std::move(rules)), live_{{}} {}

  std::size_t count() const { return live_.size(); }
  // Tokens after the prompt; beams are sorted by their sums, best first.
  std::vector<TokenId> tokens(std::size_t beam) const { return path(live_[beam].last); }

  // rows[i].top: the likeliest tokens after beam i; uses the first 2 * width.
  void extend(std::span<const TokenLogprobs> rows);
  // Whether no unfinished beam can still enter the best `width`.
  bool done() const;

  struct Answer {
    std::vector<TokenId> tokens;
    std::vector<TokenLogprobs> logprobs;  // where they are kept
    double sum = 0;
    std::optional<TokenId> end;  // nothing: max_tokens cut it
  };
  // The best `width` answers, best first.
  std::vector<Answer> best() const;

 private:
  // A token of a beam; beams share the nodes of a common prefix.
  struct Node {
    int before = -1;  // -1: the prompt
    TokenId token = 0;
    TokenLogprobs said{};
  };
  struct Beam {
    int last = -1;  // node
    int length = 0;
    double sum = 0;
    std::optional<TokenId> end{};
    TokenLogprobs end_said{};
  };
  struct Candidate {
    std::size_t beam = 0, place = 0;  // in the list of beams, in its row
    double sum = 0;
  };

  double score(double sum, int length) const;
  void complete(Beam beam);
  std::vector<TokenId> path(int node) const;
  TokenLogprobs said(const TokenLogprobs& row, std::size_t place) const;

  BeamRules rules_;
  std::vector<Beam> live_;
  std::vector<Beam> completed_;  // the best `width`, the best first
  std::vector<Node> nodes_;
  int steps_ = 0;
};

// The running search of one prompt. The sink gets all answers at the end.
class BeamSearch final : public OutputReceiver, public std::enable_shared_from_this<BeamSearch> {
 public:
  // `request`: as make_request() makes it; sampling.n is the width. Errors: as EngineClient::submit.
  static Result<std::shared_ptr<BeamSearch>> start(std::shared_ptr<Service> service, Request request,
                                                   double length_penalty, std::shared_ptr<OutputSink> sink);
  // Ends it with FinishReason::abort.
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
  Request request_;  // of a step, without the beam's tokens
  const std::shared_ptr<OutputSink> sink_;
  const int width_;
  Beams beams_;

  std::mutex mutex_;         // guards all below, which is step()'s alone while nothing is awaited
  std::size_t awaited_ = 0;  // requests of this step
  std::vector<TokenLogprobs> rows_;
  Output head_;                     // what all answers say: the engine, cached tokens, times
  std::optional<Output> broken_{};  // the first that did not come to its end
  // Always guarded.
  std::vector<RequestId> ids_;
  bool cancelled_ = false;
};

}  // namespace octavo
