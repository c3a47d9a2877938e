// Requests to an engine in this process, without HTTP. Bodies, rules and texts are those of the server.
#pragma once

#include <boost/json/object.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/generation_plan.h"
#include "serve/openai/output_processor.h"
#include "serve/service.h"

namespace octavo {

// Queue of the outputs of several requests, which it must outlive.
class Arrivals {
 public:
  struct Arrival {
    std::size_t job = 0;
    Output output;
    std::int64_t at_us = 0;  // time of push()
  };

  void push(Arrival arrival);
  // Returns a sink that pushes every output with the job's number.
  std::shared_ptr<OutputSink> sink(std::size_t job);
  // Waits at most wait_ms milliseconds for the next output. Returns false after that time.
  bool pop(Arrival& arrival, int wait_ms);

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Arrival> arrivals_;  // newest last
  std::vector<Arrival> taken_;     // newest first
};

// A prompt that the engine is answering.
class LocalGeneration {
 public:
  // Submits the plan's only prompt, which it moves out of the plan. Plan and service must outlive this
  // object.
  static Result<LocalGeneration> start(Service& service, GenerationPlan& plan, std::size_t job,
                                       Arrivals& arrivals);

  openai::AnswerPart take(Output&& output);
  bool finished() const { return unfinished_ == 0; }
  void abort() const { service_->engine.abort(id_); }

  int prompt_tokens() const { return prompt_tokens_; }
  int cached_tokens() const { return cached_tokens_; }

 private:
  LocalGeneration(Service& service, const GenerationPlan& plan);

  Service* service_;
  RequestId id_ = 0;
  std::vector<openai::OutputProcessor> processors_;
  int unfinished_;
  int prompt_tokens_;
  int cached_tokens_ = 0;
};

// Makes the plan for a body of /v1/chat/completions (with "messages") or /v1/completions. Errors: the body
// is invalid or has several prompts. cut_max_tokens: lower a max_tokens that exceeds the rest of the
// context, instead of returning an error.
Result<GenerationPlan> plan_body(const Service& service, const boost::json::object& body,
                                 bool cut_max_tokens = false);

}  // namespace octavo
