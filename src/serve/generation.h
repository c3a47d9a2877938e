// One HTTP request's generation, from the engine's queue to the client.
//
// The engine's thread only drops outputs into a mailbox. A worker takes them out, in order, turns them into
// text and writes to the client; at most one worker at a time works for a generation, so what it touches
// needs no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/exchange.h"
#include "serve/openai/answer.h"
#include "serve/openai/generation_fields.h"
#include "serve/openai/reply.h"
#include "serve/service.h"

namespace octavo {

// Everything that is settled before the engine sees the request.
struct GenerationPlan {
  openai::GenerationRequest request;
  std::vector<std::vector<TokenId>> prompts;  // checked: they fit the context
  std::vector<std::string> echo_texts;        // with echo: what each answer begins with
  bool prompt_only = false;                   // show no generated text
  StopSplitter stops;
  std::shared_ptr<const grammar::CompiledGrammar> grammar{};  // that the answers follow; null: none
  std::optional<openai::Thinking> thinking{};                 // chat, of models that think
  std::unique_ptr<openai::Reply> reply;
  std::int64_t arrived_us = 0;

  // The token behind which the grammar begins, where answers begin with thoughts.
  std::optional<TokenId> grammar_after() const {
    return thinking && thinking->open ? std::optional(thinking->end) : std::nullopt;
  }
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // Submits all prompts and answers the exchange, now with an error or from now on with the engine's output.
  static void start(std::shared_ptr<Service> service, GenerationPlan plan,
                    std::shared_ptr<http::Exchange> exchange);
  ~Generation();

 private:
  struct Mail {
    std::size_t prompt;
    Output output;
    std::int64_t at_us;
  };
  struct Choice {
    openai::Answer answer;
    openai::AnswerPart whole;            // all of it, unless streaming
    std::optional<FinishReason> told{};  // to the client
    std::int64_t last_output_us = 0;
    bool opened = false;
  };
  struct Run {  // one prompt
    openai::EchoedPrompt echoed;
    std::vector<Choice> choices;
    int prompt_tokens = 0;
    int unfinished = 0;  // choices that the client still waits for
    int cached_tokens = 0;
  };
  class Sink;

  Generation(std::shared_ptr<Service> service, GenerationPlan plan, std::shared_ptr<http::Exchange> exchange);

  Result<> submit();
  bool shows_prompt_ids() const;
  void cancel() noexcept;
  void deliver(Mail&& mail) noexcept;  // on the engine's thread
  void drain();
  void take(Mail&& mail, std::string& out);
  void advance(Run& run, Choice& choice, Mail&& mail, std::string& out);
  void measure(Run& run, Choice& choice, const Mail& mail);
  void record_end(const Run& run, const Choice& choice, FinishReason reason, const RequestTimes& times,
                  std::int64_t at_us);
  void emit(Run& run, Choice& choice, openai::AnswerPart&& part, std::string& out);
  void add_echo(const Run& run, std::size_t prompt, openai::AnswerPart& part) const;
  void conclude(std::string& out);
  void fail(const std::string& message, std::string& out);
  openai::Usage usage() const;
  bool streaming() const { return plan_.request.stream; }

  const std::shared_ptr<Service> service_;
  GenerationPlan plan_;

  // Of the worker that drains.
  std::shared_ptr<http::Exchange> exchange_;
  std::vector<Run> runs_;
  std::size_t unfinished_runs_;
  bool concluded_ = false;

  std::mutex mutex_;  // guards all below
  std::vector<RequestId> ids_;
  std::vector<Mail> mail_;
  bool started_ = false;
  bool scheduled_ = false;
  bool cancelled_ = false;
};

}  // namespace octavo
