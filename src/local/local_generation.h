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

// Where the outputs of many requests meet. Outlives them.
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
  // Waits for the next one, at most wait_ms. False: nothing came.
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

  // The next piece of the answer that the output belongs to.
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

// The plan for a body of /v1/chat/completions (it has "messages") or /v1/completions. Error: the body is
// invalid, or asks for several prompts at once. cut_max_tokens: more than the context has room for is cut to
// that, not refused.
Result<GenerationPlan> plan_body(const Service& service, const boost::json::object& body,
                                 bool cut_max_tokens = false);

}  // namespace octavo
