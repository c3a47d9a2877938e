// Requests to the engine in this process, without HTTP: the same bodies, rules and texts as the server's.
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

// Queue of the outputs of many requests. Must outlive them.
class Arrivals {
 public:
  struct Arrival {
    std::size_t job = 0;
    Output output;
    std::int64_t at_us = 0;  // when push() got it
  };

  void push(Arrival arrival);
  // Pushes every output that it gets, under the job's number.
  std::shared_ptr<OutputSink> sink(std::size_t job);
  // Waits up to wait_ms for the next output. False: timeout.
  bool pop(Arrival& arrival, int wait_ms);

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Arrival> arrivals_;  // newest last
  std::vector<Arrival> taken_;     // newest first
};

// One prompt on its way through the engine.
class LocalGeneration {
 public:
  // Submits the plan's only prompt, which moves out of it. The plan and the service outlive this.
  static Result<LocalGeneration> start(Service& service, GenerationPlan& plan, std::size_t job,
                                       Arrivals& arrivals);

  // Converts the output to the next part of its answer.
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

// The plan for a body of /v1/chat/completions (with "messages") or /v1/completions. Error: the body is
// invalid or has several prompts. cut_max_tokens: lowers max_tokens to the rest of the context instead of an
// error.
Result<GenerationPlan> plan_body(const Service& service, const boost::json::object& body,
                                 bool cut_max_tokens = false);

}  // namespace octavo
