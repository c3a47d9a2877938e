// Handles one HTTP request for text generation: receives the engine's outputs, converts them to text and
// writes the text to the client.
//
// The engine's thread only appends outputs to a queue. A worker thread reads the queue in order and does
// the rest. At most one worker runs for each generation, so the generation's data needs no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/exchange.h"
#include "serve/beam_search.h"
#include "serve/generation_plan.h"
#include "serve/openai/output_processor.h"
#include "serve/prompt_progress.h"
#include "serve/service.h"
#include "serve/submission.h"

namespace octavo {

class Generation final : public OutputReceiver, public std::enable_shared_from_this<Generation> {
 public:
  // Submits all prompts, or none if the server is full. Answers the exchange with the engine's output or with
  // an error. If `exchange` is null, only the plan's Reply gets the output. Returns the generation, so that
  // the caller can cancel it.
  static std::weak_ptr<Generation> start(std::shared_ptr<Service> service, GenerationPlan plan,
                                         std::shared_ptr<http::Exchange> exchange);
  ~Generation();

  const std::string& request_id() const { return plan_.request.request_id; }
  const std::string& client() const { return plan_.client; }  // the client's tenant
  // Ends all unfinished answers with FinishReason::abort. Returns false if the generation was already
  // cancelled.
  bool cancel() noexcept { return submission_.cancel(); }
  // Ends the generation with an error, because the server stops. Any thread may call it.
  void shut_down();
  // Called by Deadlines at the requested time. Any thread may call it.
  void wake();

 private:
  struct Mail {
    std::size_t prompt;
    Output output;
    std::int64_t at_us;
    std::shared_ptr<const std::string> weights;  // version of the weights that computed the output
  };
  struct Choice {
    openai::OutputProcessor processor;
    openai::AnswerPart kept;  // with a stream: output for the next chunk; otherwise: the whole answer so far
    int sent_tokens = 0;      // number of tokens in the chunks that were sent
    std::optional<FinishReason> reported{};  // finish reason that the client has received
    std::int64_t last_output_us = 0;
    RequestTimes times{};  // times of the answer; set when the engine ends the answer
    int preemptions = 0;
    AnswerCost cost{};
    bool ended = false;
    bool opened = false;
    std::vector<openai::WeightSpan> weights{};  // weight versions of the tokens so far
  };
  struct Run {  // one prompt and its answers
    openai::EchoedPrompt echoed;
    std::vector<Choice> choices;
    int unfinished = 0;  // number of choices whose finish reason the client has not received
    int cached_tokens = 0;
  };

  Generation(std::shared_ptr<Service> service, GenerationPlan plan, Admission::Ticket ticket,
             std::shared_ptr<http::Exchange> exchange);

  Result<> submit();
  Result<> search(std::size_t prompt);
  Result<> resume();
  bool shows_prompt_ids() const;
  void deliver(std::size_t prompt, Output&& output) noexcept override;
  void schedule();
  void drain();
  bool fetch();
  bool rest();
  bool has_work() const { return !mail_.empty() || ending_ || woken_; }  // call it with mutex_ locked
  void end_with(Error error);
  void keep_alive(std::string& out);
  std::optional<Error> end_reason();
  // returns true if the output contains only progress
  bool report_progress(const Mail& mail, std::string& out);
  void take(Mail&& mail, std::string& out);
  Result<bool> advance(Run& run, Choice& choice, Mail&& mail, std::string& out);
  void measure(Run& run, Choice& choice, Mail& mail);
  void record_end(int engine, const Run& run, const Choice& choice, FinishReason reason,
                  const RequestTimes& times, std::int64_t at_us);
  bool all_ended() const;
  AnswerCost cost() const;
  void log_end(FinishReason reason, std::int64_t at_us) const;
  void add_cost_header(http::Response& response) const;
  void add_cost_comment(std::string& out) const;
  AnswerSpan span_of(const Run& run, const Choice& choice, FinishReason reason, const RequestTimes& times,
                     std::int64_t at_us) const;
  void emit(Run& run, Choice& choice, openai::AnswerPart&& part, std::string& out);
  void send_kept(Choice& choice, std::string& out);
  void add_echo(const Run& run, std::size_t prompt, openai::AnswerPart& part) const;
  void conclude(std::string& out);
  void fail(const Error& error, std::string& out);
  void respond(http::Response response);
  openai::Usage usage() const;
  bool streaming() const { return plan_.request.stream.enabled; }
  void open_stream();

  const std::shared_ptr<Service> service_;
  GenerationPlan plan_;
  Admission::Ticket ticket_;
  Submission submission_;

  // Only the worker that drains the queue uses the members from here to mutex_.
  std::shared_ptr<http::Exchange> exchange_;
  std::vector<Run> runs_;
  std::unique_ptr<PromptProgress> progress_;  // null: the client did not request progress
  std::vector<Mail> batch_;                   // outputs taken from mail_
  std::size_t next_ = 0;
  std::size_t unfinished_runs_;
  bool concluded_ = false;
  bool stream_open_ = false;
  std::int64_t written_us_;  // time at which bytes were last written to the stream

  std::mutex mutex_;  // guards all members below
  std::vector<Mail> mail_;
  std::size_t mail_bytes_ = 0;
  bool started_ = false;
  bool scheduled_ = false;
  bool woken_ = false;
  std::optional<Error> ending_{};  // error that must end the generation and was not sent to the client yet
};

}  // namespace octavo
