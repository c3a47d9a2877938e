// One HTTP request's generation, from the engine's outputs to the client.
//
// The engine's thread only puts outputs into a queue. A worker takes them in order, converts them to text and
// writes to the client. At most one worker runs per generation, so its data needs no lock.
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
  // Submits all prompts, or none if the server is full. Answers the exchange with an error now, or with the
  // engine's output from now on. If there is no exchange, only the plan's reply gets the output. Returns the
  // generation, for cancel().
  static std::weak_ptr<Generation> start(std::shared_ptr<Service> service, GenerationPlan plan,
                                         std::shared_ptr<http::Exchange> exchange);
  ~Generation();

  const std::string& request_id() const { return plan_.request.request_id; }
  // Ends what is unfinished, with FinishReason::abort.
  void cancel() noexcept { submission_.cancel(); }
  // Any thread. Ends it with an error to the client: the server stops.
  void shut_down();
  // Any thread, at a moment that it has asked for.
  void wake();

 private:
  struct Mail {
    std::size_t prompt;
    Output output;
    std::int64_t at_us;
  };
  struct Choice {
    openai::OutputProcessor processor;
    openai::AnswerPart kept;             // of a stream, for its next chunk; else all of it
    int sent_tokens = 0;                 // with the chunks so far
    std::optional<FinishReason> told{};  // to the client
    std::int64_t last_output_us = 0;
    RequestTimes times{};  // when the engine has ended it
    int preemptions = 0;
    bool opened = false;
  };
  struct Run {  // one prompt
    openai::EchoedPrompt echoed;
    std::vector<Choice> choices;
    int unfinished = 0;  // choices that the client still waits for
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
  bool has_work() const { return !mail_.empty() || ending_ || woken_; }  // under mutex_
  void end_with(Error error);
  void keep_alive(std::string& out);
  std::optional<Error> told_to_end();
  bool report_progress(const Mail& mail, std::string& out);
  void take(Mail&& mail, std::string& out);
  Result<bool> advance(Run& run, Choice& choice, Mail&& mail, std::string& out);
  void measure(Run& run, Choice& choice, Mail& mail);
  void record_end(int engine, const Run& run, const Choice& choice, FinishReason reason,
                  const RequestTimes& times, std::int64_t at_us);
  AnswerSpan span_of(const Run& run, const Choice& choice, FinishReason reason, const RequestTimes& times,
                     std::int64_t at_us) const;
  void emit(Run& run, Choice& choice, openai::AnswerPart&& part, std::string& out);
  void send_kept(Choice& choice, std::string& out);
  void add_echo(const Run& run, std::size_t prompt, openai::AnswerPart& part) const;
  void conclude(std::string& out);
  void fail(const Error& error, std::string& out);
  void respond(http::Response response);
  openai::Usage usage() const;
  bool streaming() const { return plan_.request.stream; }
  void open_stream();

  const std::shared_ptr<Service> service_;
  GenerationPlan plan_;
  Admission::Ticket ticket_;
  Submission submission_;

  // Used by the draining worker only.
  std::shared_ptr<http::Exchange> exchange_;
  std::vector<Run> runs_;
  std::unique_ptr<PromptProgress> progress_;  // null: not requested
  std::vector<Mail> batch_;  // taken from the mailbox
  std::size_t next_ = 0;     // of the batch
  std::size_t unfinished_runs_;
  bool concluded_ = false;
  bool stream_open_ = false;
  std::int64_t written_us_;  // time of the stream's last bytes

  std::mutex mutex_;  // guards all below
  std::vector<Mail> mail_;
  std::size_t mail_bytes_ = 0;
  bool started_ = false;
  bool scheduled_ = false;
  bool woken_ = false;
  std::optional<Error> ending_{};  // the error for the client
};

}  // namespace octavo
